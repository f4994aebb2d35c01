"""State that a jitted function reads: a change is seen at the next call, or the state is named.

Expected values are those of the plain function, and arithmetic.
"""

from __future__ import annotations

import io
import sys
import threading
import types
import warnings
from pathlib import Path

import numpy as np
import pytest

import difflab as dl

HEAD = """
import argparse, collections, contextvars, ctypes, functools, itertools, io, os, threading, types
import weakref
import numpy as np
"""

WATCHED = {
    "an attribute of a module in a module": (
        "import users_package\ndef f(x): return x * users_package.sub.rate",
        "users_package.sub.rate = 3.0",
    ),
    "a module in a closure": (
        "import users_settings\n"
        "def make(m):\n    def f(x): return x * m.rate\n    return f\n"
        "f = make(users_settings)",
        "users_settings.rate = 3.0",
    ),
    "a module in a default": (
        "import users_settings\ndef f(x, m=users_settings): return x * m.rate",
        "users_settings.rate = 3.0",
    ),
    "a module in a list": (
        "import users_settings\nheld = [users_settings]\ndef f(x): return x * held[0].rate",
        "users_settings.rate = 3.0",
    ),
    "a module in a namespace": (
        "import users_settings\nns = types.SimpleNamespace(m=users_settings)\n"
        "def f(x): return x * ns.m.rate",
        "users_settings.rate = 3.0",
    ),
    "a module that is imported inside": (
        "import users_settings as settings\n"
        "def f(x):\n    import users_settings\n    return x * users_settings.rate",
        "settings.rate = 3.0",
    ),
    "a name that is imported inside": (
        "import users_settings as settings\n"
        "def f(x):\n    from users_settings import rate\n    return x * rate",
        "settings.rate = 3.0",
    ),
    "a module that is imported inside, as another name": (
        "import users_package\ndef f(x):\n    import users_package.sub as s\n    return x * s.rate",
        "users_package.sub.rate = 3.0",
    ),
    "an attribute of a module by its text": (
        "import users_settings\nname = 'rate'\ndef f(x): return x * getattr(users_settings, name)",
        "users_settings.rate = 3.0",
    ),
    "an attribute of a module that is new": (
        "import users_settings\ndef f(x): return x * getattr(users_settings, 'other', 2.0)",
        "users_settings.other = 3.0",
    ),
    "an attribute of a function": (
        "def f(x): return x * f.rate\nf.rate = 2.0",
        "f.rate = 3.0",
    ),
    "an attribute of a function in a closure": (
        "def make():\n    def g(): pass\n    g.rate = 2.0\n"
        "    def f(x): return x * g.rate\n    return f, g\nf, g = make()",
        "g.rate = 3.0",
    ),
    "an object array": (
        "held = np.array([2.0, None], dtype=object)\ndef f(x): return x * held[0]",
        "held[0] = 3.0",
    ),
    "an object in an object array": (
        "box = types.SimpleNamespace(rate=2.0)\nheld = np.array([box], dtype=object)\n"
        "def f(x): return x * held[0].rate",
        "box.rate = 3.0",
    ),
    "a context variable": (
        "var = contextvars.ContextVar('var', default=2.0)\ndef f(x): return x * var.get()",
        "var.set(3.0)",
    ),
    "an object in a context variable": (
        "var = contextvars.ContextVar('var')\nvar.set([2.0])\ndef f(x): return x * var.get()[0]",
        "var.get()[0] = 3.0",
    ),
    "a variable of the thread": (
        "local = threading.local()\nlocal.rate = 2.0\ndef f(x): return x * local.rate",
        "local.rate = 3.0",
    ),
    "a variable of the environment": (
        "os.environ['DIFFLAB_TEST'] = '2'\ndef f(x): return x * float(os.environ['DIFFLAB_TEST'])",
        "os.environ['DIFFLAB_TEST'] = '3'",
    ),
    "a variable of the environment, by os.getenv": (
        "os.environ['DIFFLAB_TEST'] = '2'\ndef f(x): return x * float(os.getenv('DIFFLAB_TEST'))",
        "os.environ['DIFFLAB_TEST'] = '3'",
    ),
    "a variable of the environment, imported": (
        "from os import environ\nenviron['DIFFLAB_TEST'] = '2'\n"
        "def f(x): return x * float(environ.get('DIFFLAB_TEST'))",
        "environ['DIFFLAB_TEST'] = '3'",
    ),
    "a key of globals()": (
        "rate = 2.0\ndef f(x): return x * globals()['rate']",
        "rate = 3.0",
    ),
    "an object behind a weak reference": (
        "class Box: rate = 1.0\nbox = Box()\nbox.rate = 2.0\nheld = weakref.ref(box)\n"
        "def f(x): return x * held().rate",
        "box.rate = 3.0",
    ),
    "a weak reference that dies": (
        "class Box: rate = 2.0\nboxes = [Box()]\nheld = weakref.ref(boxes[0])\n"
        "def f(x): return x * (held().rate if held() is not None else 3.0)",
        "boxes.clear()",
    ),
    "a dictionary of weak references": (
        "class Box: rate = 2.0\nbox = Box()\nheld = weakref.WeakValueDictionary(k=box)\n"
        "def f(x): return x * held['k'].rate",
        "box.rate = 3.0",
    ),
    "a proxy": (
        "class Box: rate = 2.0\nbox = Box()\nheld = weakref.proxy(box)\n"
        "def f(x): return x * held.rate",
        "box.rate = 3.0",
    ),
    "a ChainMap": (
        "base = {'rate': 2.0}\nheld = collections.ChainMap({}, base)\n"
        "def f(x): return x * held['rate']",
        "base['rate'] = 3.0",
    ),
    "a view of a dictionary": (
        "base = {'rate': 2.0}\nheld = types.MappingProxyType(base)\n"
        "def f(x): return x * held['rate']",
        "base['rate'] = 3.0",
    ),
    "a bytearray": ("held = bytearray([2])\ndef f(x): return x * held[0]", "held[0] = 3"),
    "a memoryview": (
        "base = bytearray([2])\nheld = memoryview(base)\ndef f(x): return x * held[0]",
        "base[0] = 3",
    ),
    "a ctypes array": (
        "held = (ctypes.c_double * 1)(2.0)\ndef f(x): return x * held[0]",
        "held[0] = 3.0",
    ),
    "a property of a metaclass": (
        "rate = 2.0\nclass Meta(type):\n    @property\n    def rate(cls): return rate\n"
        "class Box(metaclass=Meta): pass\ndef f(x): return x * Box.rate",
        "rate = 3.0",
    ),
    "a cached property": (
        "rate = 2.0\nclass Box:\n    @functools.cached_property\n    def doubled(self):\n"
        "        return rate\nbox = Box()\ndef f(x): return x * Box().doubled",
        "rate = 3.0",
    ),
    "attributes of a list of a class of the user's": (
        "class Rates(list): pass\nheld = Rates()\nheld.rate = 2.0\ndef f(x): return x * held.rate",
        "held.rate = 3.0",
    ),
    "attributes of an array of a class of the user's": (
        "class Named(np.ndarray): pass\nheld = np.zeros(2).view(Named)\nheld.rate = 2.0\n"
        "def f(x): return x * held.rate",
        "held.rate = 3.0",
    ),
    "a mask": (
        "held = np.ma.array([2.0, 1.0], mask=[0, 0])\n"
        "def f(x): return x * (3.0 if held.mask[1] else 2.0)",
        "held[1] = np.ma.masked",
    ),
    "slots of a base class": (
        "class Base: __slots__ = ('rate',)\nclass Box(Base): __slots__ = ('other',)\n"
        "box = Box()\nbox.rate = 2.0\ndef f(x): return x * box.rate",
        "box.rate = 3.0",
    ),
    "attributes of a wrapper": (
        "class Wrapper:\n    def __init__(self, f): functools.update_wrapper(self, f)\n"
        "    def __call__(self, x): return self.__wrapped__(x) * self.rate\n"
        "g = Wrapper(lambda x: x)\ng.rate = 2.0\ndef f(x): return g(x)",
        "g.rate = 3.0",
    ),
    "two variables of one name": (
        "def make(k):\n    def inner(x): return x * k[0]\n    return inner\n"
        "first, second = [1.0], [2.0]\na, b = make(first), make(second)\n"
        "def f(x): return a(b(x))",
        "first[0] = 1.5",
    ),
    "a mock object": (
        "from unittest.mock import MagicMock\nbox = MagicMock()\nbox.rate = 2.0\n"
        "def f(x): return x * box.rate",
        "box.rate = 3.0",
    ),
    "a queue": (
        "import queue\nheld = queue.Queue()\nheld.put(2.0)\ndef f(x): return x * held.queue[0]",
        "held.get(); held.put(3.0)",
    ),
    "the keys of a dictionary": (
        "class Key: rate = 2.0\nkey = Key()\nheld = {key: 1}\n"
        "def f(x):\n    for k in held: x = x * k.rate\n    return x",
        "key.rate = 3.0",
    ),
    "a module without a file": (
        "m = types.ModuleType('m')\nm.rate = 2.0\ndef f(x): return x * m.rate",
        "m.rate = 3.0",
    ),
    "a class in a module without a file": (
        "import sys\nm = sys.modules['users_m'] = types.ModuleType('users_m')\n"
        "exec('class Box: rate = 2.0', vars(m))\nheld = [m.Box()]\ndel sys.modules['users_m']\n"
        "def f(x): return x * held[0].rate",
        "m.Box.rate = 3.0",
    ),
    "an attribute that a module computes": (
        "import users_settings\nstate = {'other': 2.0}\n"
        "users_settings.__getattr__ = lambda name: state[name]\n"
        "def f(x): return x * users_settings.other",
        "state['other'] = 3.0",
    ),
    "an attribute of a module by operator": (
        "import operator, users_settings\nget = operator.attrgetter('rate')\n"
        "def f(x): return x * get(users_settings)",
        "users_settings.rate = 3.0",
    ),
    "an object array without axes": (
        "held = np.array(None)\nheld[()] = 2.0\ndef f(x): return x * held.item()",
        "held[()] = 3.0",
    ),
    "an object array with axes": (
        "held = np.full((2, 2), 2.0, dtype=object)\ndef f(x): return x * held[1, 1]",
        "held[1, 1] = 3.0",
    ),
    "an array of a structure": (
        "held = np.zeros(2, dtype=[('rate', float)])\nheld['rate'] = 2.0\n"
        "def f(x): return x * float(held[1]['rate'])",
        "held['rate'][1] = 3.0",
    ),
    "a list that grows at its end": (
        "held = [1.0, 1.0]\ndef f(x): return x * sum(held)",
        "held.append(1.0)",
    ),
    "a list of the user's that grows": (
        "class Rates(list): pass\nheld = Rates([1.0, 1.0])\ndef f(x): return x * sum(held)",
        "held.append(1.0)",
    ),
    "a value that moves to another list": (
        "a, b = [1.0, 1.0], [1.0]\ndef f(x): return x * (len(a) if a else 3.0)",
        "b += a; a.clear()",
    ),
    "an attribute that is renamed": (
        "s = types.SimpleNamespace(rate=2.0)\n"
        "def f(x): return x * (s.rate if hasattr(s, 'rate') else 3.0)",
        "s.other = s.rate; del s.rate",
    ),
    "an array of a device": (
        "from tests.support import standin\nheld = standin.asarray([2.0, 1.0])\n"
        "def f(x): return x * float(held.get()[0])",
        "held[0] = 3.0",
    ),
    "a descriptor": (
        "class Level:\n    value = 2.0\n    def __get__(self, owner, kind): return self.value\n"
        "level = Level()\nclass Box: rate = level\nbox = Box()\ndef f(x): return x * box.rate",
        "level.value = 3.0",
    ),
    "a default factory": (
        "rate = 2.0\nheld = collections.defaultdict(lambda: rate)\n"
        "def f(x): return x * held.copy()['k']",
        "rate = 3.0",
    ),
    "a function behind a cache": (
        "rate = 2.0\ndef g(x): return x * rate\n"
        "class Cache:\n    def __init__(self, f): self.f = f\n"
        "    def __call__(self, x): return self.f(x)\n"
        "h = Cache(g)\ndef f(x): return h(x)",
        "rate = 3.0",
    ),
    "the gradient of a tensor": (
        "import difflab as dl\nw = dl.tensor(1.0, requires_grad=True)\n(w * 2.0).backward()\n"
        "def f(x): return x * w.grad.item()",
        "(w * 1.0).backward()",
    ),
    "a part of a package's state": (
        "import string\ndef f(x): return x * len(string.digits)",
        "string.digits = '0' * 15",
    ),
}


@pytest.fixture
def users(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A module of the user's, beside others that it can import."""
    for name in ("users_settings", "users_package", "users_package.sub"):
        made = types.ModuleType(name)
        made.__dict__.update(__file__=f"{name}.py", rate=2.0)
        monkeypatch.setitem(sys.modules, name, made)
    installed = types.ModuleType("users_installed")
    installed.__file__ = "/lib/site-packages/users_installed.py"
    exec("import numpy\ndef read_rate(path): return float(numpy.loadtxt(path))", installed.__dict__)
    monkeypatch.setitem(sys.modules, "users_installed", installed)
    sys.modules["users_package"].__dict__["sub"] = sys.modules["users_package.sub"]
    monkeypatch.setenv("DIFFLAB_TEST", "")
    monkeypatch.setattr("string.digits", "0123456789")
    found = types.ModuleType("users")
    exec(HEAD, found.__dict__)
    return found


def run(text: str, users: types.ModuleType) -> None:
    exec(compile(text, "users.py", "exec"), users.__dict__)


@pytest.mark.parametrize("kind", WATCHED)
def test_a_change_is_seen(kind: str, users: types.ModuleType) -> None:
    text, change = WATCHED[kind]
    run(text, users)
    fast = dl.jit(users.f)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = fast(10.0)
        run(change, users)
        after = fast(10.0)
    assert after == pytest.approx(before * 1.5, rel=1e-15)


def test_another_thread_reads_its_own_variables() -> None:
    local = threading.local()
    fast = dl.jit(lambda x: x * local.rate)
    found: list[float] = []

    def call(rate: float) -> None:
        local.rate = rate
        found.append(fast(10.0))

    call(2.0)
    other = threading.Thread(target=call, args=(3.0,))
    other.start()
    other.join()
    assert [*found, fast(10.0)] == [20.0, 30.0, 20.0]


def test_the_text_of_changes_names_them(users: types.ModuleType) -> None:
    run("import users_package\ndef f(x): return x * users_package.sub.rate", users)
    fast = dl.jit(users.f)
    fast(1.0)
    sys.modules["users_package.sub"].__dict__["rate"] = 3.0
    fast(1.0)
    assert fast.traces[1].cause == "global users_package.sub.rate is 3.0, was 2.0"
    assert fast.traces[1].where == "users.py, line 2"


STREAMS = {
    "a generator": "held = [2.0, 3.0, 4.0]\nstream = (v for v in held)",
    "a generator of one step": (
        "def count():\n    v = 1.0\n    while True:\n        v += 1.0\n        yield v\n"
        "stream = count()"
    ),
    "a generator in a generator": (
        "def count():\n    yield from iter([2.0, 3.0, 4.0])\nstream = count()"
    ),
    "an iterator": "stream = iter([2.0, 3.0, 4.0])",
    "an object": (
        "class Stream:\n    v = 1.0\n    def __next__(self):\n"
        "        self.v += 1.0\n        return self.v\nstream = Stream()"
    ),
}


@pytest.mark.parametrize("kind", STREAMS)
def test_what_is_read_on_is_read_at_each_call(kind: str, users: types.ModuleType) -> None:
    run(STREAMS[kind] + "\ndef f(x): return x * next(stream)", users)
    users.__dict__["next"] = lambda stream: stream.__next__()
    fast = dl.jit(users.f)
    assert fast(10.0) == 20.0
    with pytest.warns(
        UserWarning, match="jit of f: every call traces it, .* changes what it reads"
    ):
        assert fast(10.0) == 30.0
    assert fast(10.0) == 40.0
    assert fast.explain().count("its run changes what it reads: ") == 3


NAMED = {
    "a file that is opened": (
        "def f(x):\n    with open(path) as file: return x * float(file.read())",
        "open(): what it reads from a file is not watched (users.py, line 2)",
    ),
    "a file that NumPy loads": (
        "def f(x): return x * np.loadtxt(path)",
        "np.loadtxt(): what it reads from a file is not watched (users.py, line 1)",
    ),
    "a file by a method": (
        "from pathlib import Path\ndef f(x): return x * float(Path(path).read_text())",
        ".read_text(): what it reads from a file is not watched (users.py, line 2)",
    ),
    "an open file": (
        "file = open(path)\ndef f(x):\n    file.seek(0)\n    return x * float(file.read())",
        "global file: the content of a file is not watched (users.py, line 3)",
    ),
    "the clock": (
        "import time\ndef f(x): return x + time.time() * 0",
        "time.time(): what it returns is another value at each call (users.py, line 2)",
    ),
    "the clock, imported inside": (
        "def f(x):\n    from time import perf_counter as now\n    return x + now() * 0",
        "time.perf_counter(): what it returns is another value at each call",
    ),
    "an identifier": (
        "import uuid\ndef f(x): return x + uuid.uuid4().int * 0",
        "uuid.uuid4(): what it returns is another value at each call (users.py, line 2)",
    ),
    "a secret": (
        "def f(x):\n    import secrets\n    return x + secrets.randbelow(5) * 0",
        "secrets.randbelow(): what it returns is another value at each call (users.py, line 3)",
    ),
    "the date": (
        "import datetime\ndef f(x): return x * datetime.datetime.now().year",
        "datetime.datetime.now(): what it returns is another value",
    ),
    "a computed key of globals()": (
        "def f(x): return x * globals()['_'.join(('ra', 'te'))]\nra_te = 2.0",
        "globals(): what is reached by a computed name is not watched",
    ),
    "a file that a package reads": (
        "import users_installed\ndef f(x): return x * users_installed.read_rate(path)",
        "users_installed.read_rate(): what it reads from a file is not watched (users.py, line 2)",
    ),
    "whether a file exists": (
        "def f(x): return x * os.path.exists(path)",
        "os.path.exists(): what it reads from a file is not watched",
    ),
    "an iterator without a position": (
        "held = map(float, [2.0])\ndef f(x): return x * (held is not None)",
        "global held: how far it was read is not watched",
    ),
    "an object without attributes": (
        "import zlib\nheld = zlib.decompressobj()\ndef f(x): return x * (not held.eof)",
        "global held: the state of a Decompress is not watched",
    ),
    "an object that reads from outside": (
        "import sqlite3\nheld = sqlite3.connect(':memory:')\n"
        "def f(x): return x * held.execute('select 2').fetchone()[0]",
        "global held: what a Connection reads is not watched",
    ),
}


@pytest.mark.parametrize("kind", NAMED)
def test_what_is_not_watched_is_named_once(
    kind: str, users: types.ModuleType, tmp_path: Path
) -> None:
    text, name = NAMED[kind]
    users.__dict__["path"] = str(tmp_path / "rate.txt")
    Path(users.path).write_text("2.0")
    run(text, users)
    fast = dl.jit(users.f)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fast(10.0)
        fast(np.ones(2))
        fast(np.ones(3))
    assert [str(one.message)[: len(name) + 10] for one in caught] == [f"jit of f: {name}"]
    assert caught[0].filename == __file__
    assert fast.explain().count(f"not watched: {name}") == 3
    for held in ("file", "held"):
        getattr(users.__dict__.get(held), "close", lambda: None)()


QUIET = {
    "logging": "import logging\nlog = logging.getLogger('users')",
    "a lock": "log = threading.Lock()",
    "a pattern": "import re\nlog = re.compile('a')",
    "a path": "import pathlib\nlog = pathlib.Path('a')",
    "a date": "import datetime\nlog = datetime.date(2000, 1, 1)",
    "a fraction": "import fractions\nlog = fractions.Fraction(1, 2)",
    "a generator of random numbers": "log = np.random.default_rng(0)",
    "a dtype": "log = np.dtype(float)",
    "a universal function": "log = np.sin",
    "a partial": "log = functools.partial(print, 1)",
    "a file to write": "log = open(os.devnull, 'w')",
    "the standard output": "import sys\nlog = sys.stdout",
    "text in memory": "log = io.StringIO('text')",
    "an enumeration": "import enum\nlog = enum.Enum('E', 'a b').a",
    "an object()": "log = object()",
    "a cached function": "log = functools.lru_cache(lambda x: x)",
    "a method of a list": "log = [].append",
    "a function of difflab": "import difflab\nlog = difflab.parse('x*y')",
    "a compiled function": "import difflab\nlog = difflab.compile(difflab.parse('x*y'))",
    "a decimal": "import decimal\nlog = decimal.Decimal(2)",
}


@pytest.mark.parametrize("kind", QUIET)
def test_nothing_is_named_without_need(kind: str, users: types.ModuleType) -> None:
    run(QUIET[kind] + "\ndef f(x):\n    log\n    return x * 2.0", users)
    fast = dl.jit(users.f)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [fast(1.0), fast(2.0)] == [2.0, 4.0]
    assert len(fast.traces) == 1
    assert "not watched" not in fast.explain()
    if isinstance(users.log, io.IOBase) and users.log is not sys.stdout:
        users.log.close()

"""`dl.jit`: what a call returns is what the Python function returns, whatever changed between."""

import functools
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import difflab as dl
from difflab.errors import InputError, TraceError
from difflab.graph.pytree import flatten
from tests.support.rows import for_each

X = np.array([0.5, 1.0, 2.0])


def module(text: str) -> types.ModuleType:
    """Return a module of the user's with this text."""
    made = types.ModuleType("users")
    made.__dict__["np"] = np
    exec(compile(text, "users.py", "exec"), made.__dict__)
    return made


def same(found: Any, wanted: Any) -> None:
    """Assert equal trees, up to rounding."""
    leaves, structure = flatten(found)
    expected, shape = flatten(wanted)
    assert structure == shape
    for one, other in zip(leaves, expected, strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=1e-14)


@dataclass
class Layer:
    weights: Any
    bias: Any


class Pair(NamedTuple):
    first: Any
    second: Any


class TestArguments:
    @for_each(
        "tree",
        [
            2.0,
            3,
            True,
            np.float64(1.5),
            np.float32(1.5),
            X,
            X.astype(np.float32),
            np.array([1, 2, 3]),
            np.array(2.0),
            [1.0, (X, {"b": X, "a": 2.0})],
            Pair(X, 2.0),
            Layer(X, [1.0, None]),
            {"layers": [Layer(X, 1.0), Layer(2 * X, 2.0)]},
        ],
        ids=str,
    )
    def test_every_tree_of_numbers(self, tree: Any) -> None:
        def function(tree: Any) -> Any:
            leaves = flatten(tree)[0]
            return {"sum": functools.reduce(lambda a, b: a + b, leaves) * 1.0, "tree": tree}

        fast = dl.jit(function)
        for _ in range(3):
            found = fast(tree)
            same(found, function(tree))
        assert type(found["tree"]) is type(tree) or not isinstance(
            tree, list | dict | tuple | Layer
        )
        assert len(fast.traces) == 1
        assert fast.traces[0].calls == 3

    def test_named_arguments_are_traced(self) -> None:
        fast = dl.jit(lambda x, *, scale: x * scale)
        same(fast(X, scale=2.0), X * 2)
        same(fast(X, scale=3.0), X * 3)
        assert len(fast.traces) == 1

    def test_another_shape_dtype_or_tree_is_another_trace(self) -> None:
        fast = dl.jit(lambda tree: np.sum(tree["x"]) * len(tree))
        calls: list[Any] = [
            {"x": X},
            {"x": np.ones(4)},
            {"x": X.astype(np.float32)},
            {"x": X, "y": 1.0},
            {"x": X},
        ]
        for tree in calls:
            assert fast(tree) == pytest.approx(np.sum(tree["x"]) * len(tree), rel=1e-7)
        assert [trace.cause for trace in fast.traces] == [
            "first call",
            "tree['x'] was float64 (3,), is float64 (4,)",
            "tree['x'] was float64 (4,), is float32 (3,)",
            "tree['x'] was float32 (3,), is float64 (3,)",
        ]

    def test_lists_and_tuples_are_different_containers(self) -> None:
        fast = dl.jit(lambda tree: tree[0] if isinstance(tree, list) else tree[1])
        assert [fast([1.0, 2.0]), fast((1.0, 2.0)), fast([1.0, 2.0])] == [1.0, 2.0, 1.0]
        assert fast.traces[1].cause == "arguments in other containers"

    def test_static_arguments_are_constants(self) -> None:
        fast = dl.jit(lambda x, n: functools.reduce(lambda y, _: y * 2, range(n), x), 1)
        assert [fast(1.0, 3), fast(1.0, 4), fast(2.0, 3)] == [8.0, 16.0, 16.0]
        assert [trace.calls for trace in fast.traces] == [2, 1]
        assert fast.traces[1].cause == "n was 3 (static), is 4 (static)"

    @pytest.mark.parametrize("pair", [(0.0, -0.0), (1, 1.0), (1, True), ((1,), (True,))])
    def test_equal_static_arguments_of_other_kinds_are_told_apart(self, pair: Any) -> None:
        fast = dl.jit(lambda x, kind: x + len(repr(kind)), static_argnums=-1)
        for value in (*pair, *pair):
            assert fast(1.0, value) == 1 + len(repr(value))

    @pytest.mark.parametrize(
        ("args", "static", "message"),
        [
            ((1.0, "relu"), (), "jit traces numbers and arrays, but b is str"),
            (
                (1.0, {"k": [1j]}),
                (),
                r"jit traces numbers and arrays, but b\['k'\]\[0\] is complex",
            ),
            ((1.0, np.array(["a"])), (), "but b is <U1"),
            ((1.0, [2]), 1, "static argument 1 of jit has no hash"),
            ((1.0, 2.0), 5, "names argument 5, but the call has 2 positional arguments"),
        ],
    )
    def test_other_arguments_are_refused(self, args: Any, static: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            dl.jit(lambda a, b: a, static)(*args)

    def test_bad_settings_are_refused_at_once(self) -> None:
        with pytest.raises(InputError, match="jit takes a function, not str"):
            dl.jit("sin(x)")  # type: ignore[arg-type]
        with pytest.raises(InputError, match="static_argnums of jit must be an integer"):
            dl.jit(abs, "x")  # type: ignore[arg-type]
        with pytest.raises(InputError, match="there is no target"):
            dl.jit(abs, target="gpu")

    def test_a_branch_or_a_turn_count_names_its_line(self) -> None:
        users = module("def f(x):\n    if x > 0:\n        return x\n    return -x\n")
        with pytest.raises(TraceError, match=r"a branch on a traced value"):
            dl.jit(users.f)(1.0)
        with pytest.raises(TraceError, match="neither an index nor a number of turns") as error:
            dl.jit(lambda n: sum(range(n)))(3)
        assert "static_argnums" in str(error.value.hint)


PROGRAM = """
rate = 0.1
shift = np.array([1.0, 2.0, 3.0])
table = {"a": 1.0, "b": [2.0, 3.0]}
def scaled(x, by=2.0):
    return x * by * rate
class Settings:
    power = 2
    def __init__(self):
        self.gain, self.inner = 1.5, [1.0]
    def apply(self, x):
        return self.gain * x ** self.power + self.inner[0]
settings = Settings()
def maker():
    offset = 1.0
    history = [1.0]
    def step(x):
        local = settings
        y = scaled(x) + shift + offset + local.apply(x)
        return y * table["a"] + table["b"][1] * sum(history)
    def move(value):
        nonlocal offset
        offset = value
    return step, move, history
step, move, history = maker()
"""


def rebind(users: Any, value: float) -> None:
    users.rate = value


def change_array(users: Any, value: float) -> None:
    users.shift[1] = value


def new_array(users: Any, value: float) -> None:
    users.shift = np.full(3, value)


def change_table(users: Any, value: float) -> None:
    users.table["b"][1] = value


def change_attribute(users: Any, value: float) -> None:
    users.settings.gain = value


def change_inner(users: Any, value: float) -> None:
    users.settings.inner[0] = value


def change_class(users: Any, value: float) -> None:
    users.Settings.power = int(value)


def change_method(users: Any, value: float) -> None:
    users.Settings.apply = lambda self, x: x + value


def change_default(users: Any, value: float) -> None:
    users.scaled.__defaults__ = (value,)


def change_function(users: Any, value: float) -> None:
    users.scaled = lambda x: x - value


def change_closure(users: Any, value: float) -> None:
    users.move(value)


def change_history(users: Any, value: float) -> None:
    users.history.append(value)


CHANGES: list[Callable[[Any, float], None]] = [
    rebind,
    change_array,
    new_array,
    change_table,
    change_attribute,
    change_inner,
    change_class,
    change_method,
    change_default,
    change_function,
    change_closure,
    change_history,
]


class TestStateThatIsRead:
    @for_each("change", CHANGES, ids=lambda change: change.__name__)
    def test_each_change_is_one_more_trace(self, change: Callable[[Any, float], None]) -> None:
        users = module(PROGRAM)
        fast = dl.jit(users.step)
        same(fast(X), users.step(X))
        same(fast(X), users.step(X))
        change(users, 4.0)
        same(fast(X), users.step(X))
        same(fast(X), users.step(X))
        assert len(fast.traces) == 2
        assert "first call" not in fast.traces[1].cause

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.tuples(st.sampled_from(CHANGES), st.sampled_from([0.5, 1.0, 2.0]))))
    def test_any_sequence_of_changes(self, changes: Any) -> None:
        users = module(PROGRAM)
        fast = dl.jit(users.step)
        for change, value in changes:
            change(users, value)
            same(fast(X), users.step(X))

    def test_an_equal_value_is_no_change(self) -> None:
        users = module(PROGRAM)
        fast = dl.jit(users.step)
        fast(X)
        users.rate, users.table = float("0.1"), {"a": 1.0, "b": [2.0, 3.0]}
        users.shift = users.shift.copy()
        fast(X)
        assert len(fast.traces) == 1
        users.rate = 0.0
        users.rate, before = -0.0, fast(X)
        same(fast(X), before)
        assert len(fast.traces) == 3  # 0.0 and -0.0 differ

    def test_the_sign_of_a_zero_in_an_array_is_seen(self) -> None:
        users = module("held = np.zeros(1)\ndef f(x):\n    return x / held\n")
        fast = dl.jit(users.f)
        with np.errstate(divide="ignore"):
            assert fast(np.ones(1)) == np.inf
            users.held[0] = -0.0
            assert fast(np.ones(1)) == -np.inf

    def test_a_state_that_comes_back_finds_its_trace(self) -> None:
        users = module(PROGRAM)
        fast = dl.jit(users.step)
        for rate in (0.1, 0.2, 0.1, 0.2):
            users.rate = rate
            same(fast(X), users.step(X))
        assert [trace.calls for trace in fast.traces] == [2, 2]
        assert fast.traces[1].cause == "global rate is 0.2, was 0.1"
        assert fast.traces[1].where == "users.py, line 6"

    def test_what_is_not_read_does_not_matter(self) -> None:
        users = module(PROGRAM + "other = 1\n")
        fast = dl.jit(users.step)
        fast(X)
        users.other = 2
        fast(X)
        assert len(fast.traces) == 1

    @pytest.mark.parametrize("wrap", [dl.grad, lambda f: functools.partial(f, c=1.0), dl.jit])
    def test_functions_inside_transforms_are_searched(self, wrap: Any) -> None:
        users = module("k = 2.0\ndef f(x, c=0.0):\n    return k * x * x + c\n")
        fast = dl.jit(wrap(users.f))
        for users.k in (2.0, 3.0):
            same(fast(1.5), wrap(users.f)(1.5))

    def test_methods_and_callable_objects(self) -> None:
        users = module(PROGRAM + "class Model(Settings):\n    __call__ = Settings.apply\n")
        model = users.Model()
        for fast, plain in ((dl.jit(model.apply), model.apply), (dl.jit(model), model)):
            for model.gain in (1.0, 2.0):
                same(fast(X), plain(X))

    @pytest.mark.parametrize(
        ("made", "change"),
        [
            ("types.SimpleNamespace(k=[2.0])", "s.k[0] = 3.0"),
            ("argparse.Namespace(k=[2.0])", "s.k = [3.0]"),
            ("types.SimpleNamespace(k=collections.deque([2.0]))", "s.k.append(3.0)"),
            ("types.SimpleNamespace(k=array.array('d', [2.0]))", "s.k[0] = 3.0"),
            ("types.SimpleNamespace(k={2.0})", "s.k.add(3.0)"),
            ("types.SimpleNamespace(k={2.0: None})", "s.k = {**s.k, 3.0: s.k.pop(2.0)}"),
            ("types.SimpleNamespace(k={2.0: None})", "s.k[3.0] = s.k.pop(2.0)"),
            ("types.SimpleNamespace(k=collections.UserList([2.0]))", "s.k.append(3.0)"),
            ("types.SimpleNamespace(k=collections.OrderedDict({2.0: 1}))", "s.k[3.0] = 1"),
        ],
    )
    def test_containers_of_the_standard_library(self, made: str, change: str) -> None:
        users = module(
            f"import argparse, array, collections, types\ns = {made}\n"
            "def f(x):\n    held = s\n    return x * sum(held.k)\n"
        )
        fast = dl.jit(users.f)
        same(fast(1.5), users.f(1.5))
        same(fast(1.5), users.f(1.5))
        assert len(fast.traces) == 1
        exec(change, users.__dict__)
        same(fast(1.5), users.f(1.5))
        assert len(fast.traces) == 2

    def test_slots_of_objects_and_the_code_of_functions(self) -> None:
        users = module(
            "class Slots:\n    __slots__ = ('k',)\n    def __call__(self, x):\n"
            "        return self.k * g(x)\ndef g(x):\n    return x\n"
        )
        slots = users.Slots()
        fast = dl.jit(slots)
        for slots.k in (2.0, 3.0):
            same(fast(1.5), slots(1.5))
        users.g.__code__ = (lambda x: x + 1).__code__
        same(fast(1.5), slots(1.5))

    def test_a_jitted_method_of_a_class(self) -> None:
        users = module("class M:\n    k = 2.0\n    def f(self, x):\n        return self.k * x\n")
        users.M.f = dl.jit(users.M.f, static_argnums=0)
        model = users.M()
        assert [model.f(3.0), setattr(model, "k", 5.0), model.f(3.0)] == [6.0, None, 15.0]

    def test_attributes_of_the_users_modules(self) -> None:
        settings = module("rate = 2.0")
        settings.__file__ = "settings.py"
        users = module("def f(x):\n    return settings.rate * x\n")
        users.settings = settings
        fast = dl.jit(users.f)
        assert [fast(1.0), setattr(settings, "rate", 3.0), fast(1.0)] == [2.0, None, 3.0]


class TestComposition:
    def test_transforms_go_through(self) -> None:
        def loss(x: Any) -> Any:
            return np.sum(np.sin(x) * x)

        fast = dl.jit(loss)
        wanted = np.cos(X) * X + np.sin(X)
        same(dl.grad(fast)(X), wanted)
        same(dl.jit(dl.grad(fast))(X), wanted)
        same(dl.vmap(fast)(np.stack([X, 2 * X])), np.array([loss(X), loss(2 * X)]))
        leaf = dl.tensor(X, requires_grad=True)
        fast(leaf).backward()
        same(leaf.grad.numpy(), wanted)

    def test_a_value_of_a_trace_around_is_not_kept(self) -> None:
        def outer(x: Any) -> Any:
            return dl.jit(lambda y: x * y)(2.0) * x

        same(dl.grad(outer)(3.0), 12.0)

    def test_a_function_and_a_target(self) -> None:
        function = dl.parse("x*sin(y)")
        for target in ("python", "numpy", "auto"):
            same(dl.jit(function, target=target)(2.0, 0.5), 2 * np.sin(0.5))

    def test_results_do_not_share_memory(self) -> None:
        fast = dl.jit(lambda x: (x, x, x.T))
        found = [*fast(X), *fast(X), X]
        for number, one in enumerate(found):
            assert not any(np.shares_memory(one, other) for other in found[:number])

    def test_a_network_of_a_million_parameters_trains(self) -> None:
        rng = np.random.default_rng(0)
        params = {
            "w1": rng.normal(size=(1000, 999)) / 30,
            "b1": np.zeros(1000),
            "w2": rng.normal(size=1000) / 30,
        }
        assert sum(value.size for value in params.values()) >= 1_000_000
        x, y = rng.normal(size=(999, 8)), rng.normal(size=8)

        @dl.jit
        def step(params: Any, x: Any, y: Any) -> Any:
            def loss(params: Any) -> Any:
                hidden = np.tanh(params["w1"] @ x + params["b1"][:, None])
                return np.mean((params["w2"] @ hidden - y) ** 2)

            value, slopes = dl.value_and_grad(loss)(params)
            return value, {name: params[name] - 5e-4 * slopes[name] for name in params}

        losses = []
        for _ in range(30):
            loss, params = step(params, x, y)
            losses.append(loss)
        assert losses[-1] < losses[0] / 10
        assert len(step.traces) == 1


def test_traces_are_limited_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("difflab.execute.jit.jit.MOST_TRACES", 3)
    fast = dl.jit(lambda x: np.sum(x))
    for size in (1, 2, 3, 4, 1):
        assert fast(np.ones(size)) == size
    assert [next(iter(trace.arguments.values())) for trace in fast.traces] == [
        "float64 (3,)",
        "float64 (4,)",
        "float64 (1,)",
    ]


@pytest.mark.parametrize("target", ["numpy", "native"])
@pytest.mark.parametrize("dtype", [None, "float32"])
def test_cached_calls_convert_single_precision_among_double(target: str, dtype: str | None) -> None:
    if target == "native":
        pytest.importorskip("llvmlite")
    weights = np.linspace(1, 2, 12).reshape(3, 4)

    def function(tree: Any) -> Any:
        return {"y": np.tanh(tree["w"] @ tree["x"])}

    fast = dl.jit(function, target=target, dtype=dtype)
    for turn in range(4):
        x = np.arange(4, dtype=np.float32) / (2 + turn)
        found, wanted = fast({"w": weights, "x": x}), function({"w": weights, "x": x})
        for name in found:
            assert found[name].dtype == (dtype or np.float64)
            np.testing.assert_allclose(found[name], wanted[name], rtol=2e-6 if dtype else 1e-14)
    assert fast.traces[0].calls == 4


def test_cached_calls_take_what_the_code_captured_and_scalars() -> None:
    offset = np.linspace(-1, 1, 3)

    def function(tree: Any) -> Any:
        return [np.sin(tree["x"] * tree["scale"]) + offset, tree["scale"] * 2]

    fast = dl.jit(function)
    for scale in (2.0, np.float64(3.0), 0.5):
        tree = {"x": X * scale, "scale": scale}
        same(fast(tree), function(tree))
    assert len(fast.traces) == 1

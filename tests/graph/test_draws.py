"""The search for generators of random numbers in code, and objects that answer to every name."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from random import gauss
from random import random as draw
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, create_autospec

import numpy as np
import pytest

import difflab as dl
from difflab.errors import TraceError

OWN = random.Random(3)


class Endless:
    """Every attribute is another such object."""

    def __getattr__(self, name: str) -> Any:
        return Endless()

    def __call__(self, x: Any) -> Any:
        return x * x


class Ordinary:
    """Every attribute that is not set is a number."""

    def __getattr__(self, name: str) -> float:
        return 1.0

    def __call__(self, x: Any) -> Any:
        return x * x


class Circle:
    """It wraps itself."""

    def __init__(self) -> None:
        self.__wrapped__ = self.func = self.__func__ = self

    def __call__(self, x: Any) -> Any:
        return x * x


class Claiming(Endless):
    """It says that it is a generator of random numbers."""

    __class__ = np.random.Generator  # type: ignore[assignment]


def two_circles() -> Circle:
    first, second = Circle(), Circle()
    first.__wrapped__, second.__wrapped__ = second, first
    return first


MAKERS: dict[str, Callable[[], Any]] = {
    "mock": lambda: MagicMock(side_effect=lambda x: x * x),
    "mock of a generator": lambda: create_autospec(np.random.Generator, instance=True),
    "endless": Endless,
    "ordinary": Ordinary,
    "circle": Circle,
    "two circles": two_circles,
    "claiming": Claiming,
}
RUNS: dict[str, Callable[[Callable[..., Any], float], Any]] = {
    "trace": lambda f, x: dl.trace(f, x)(x),
    "jit": lambda f, x: dl.jit(f)(x),
    "grad": lambda f, x: dl.grad(f)(x) * x / 2,
    "jit of grad": lambda f, x: dl.jit(dl.grad(f))(x) * x / 2,
    "vmap": lambda f, x: dl.vmap(f)(np.array([x]))[0],
    "jacfwd": lambda f, x: dl.jacfwd(f)(x) * x / 2,
}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("kind", MAKERS)
def test_objects_that_answer_to_every_name_end_the_search(kind: str, run: str) -> None:
    held = MAKERS[kind]()
    held.rate = 3.0
    inside = SimpleNamespace(held=held)
    wanted = [9.0, 12.0] if "grad" not in run and run != "jacfwd" else [9.0, 4.0 * 3 / 2]
    for shared in (held, inside, [held]):
        found = RUNS[run](lambda x, box=shared: x * x + 0 * id(box), 3.0)
        assert found == pytest.approx(9.0)
    power = RUNS[run](lambda x: x * held.rate, 4.0)
    assert power == pytest.approx(wanted[1])
    if kind != "mock of a generator":
        assert RUNS[run](held, 3.0) == pytest.approx(9.0)


@pytest.mark.parametrize("run", ["trace", "jit"])
@pytest.mark.parametrize(
    ("code", "text"),
    [
        (lambda x: x * random.gauss(0, 1), "random.gauss(0, 1)"),
        (lambda x: x * random.random(), "random.random()"),
        (lambda x: x * gauss(0, 1), "gauss(0, 1)"),
        (lambda x: x * draw(), "draw()"),
        (lambda x: x * OWN.uniform(0, 1), "OWN.uniform(0, 1)"),
    ],
)
def test_draws_from_pythons_random_are_an_error(
    code: Callable[..., Any], text: str, run: str
) -> None:
    states = random.getstate(), OWN.getstate()
    with pytest.raises(TraceError, match="drew random numbers from Python's random") as caught:
        RUNS[run](code, 1.0)
    assert text in (caught.value.text or "")
    assert (random.getstate(), OWN.getstate()) == states


def test_the_first_draw_of_a_process_is_an_error() -> None:
    """NumPy loads its generators at their first use."""
    code = (
        "import numpy as np, difflab as dl, sys; assert 'numpy.random' not in sys.modules\n"
        "try: dl.jit(lambda x: x * np.random.normal())(1.0)\n"
        "except dl.errors.TraceError as error: print(error.message)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("traced code drew random numbers from numpy.random")

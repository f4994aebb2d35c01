"""Random programs on PyTorch's and JAX's arrays, held to NumPy's.

The programs are those of `arrays`. Libraries compute with functions of their own, which have other
dtypes of integers, other orders of sums and other limits; what one lacks is refused by name. Some
inputs are integers or truth values, of which every library makes float64. What PyTorch's tensors of
another device give is there, too.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from difflab.core.optional import load
from difflab.errors import UnsupportedError
from difflab.graph.function import Function
from tests.differential.array_programs import CHOSEN, Draw
from tests.differential.arrays import Program as OfArrays
from tests.differential.arrays import listed, programs
from tests.differential.judging import agree, noise
from tests.differential.search import Family

MODULES = {name: load(name).module for name in ("torch", "jax")}
LIBRARIES = ("torch",) * 7 + ("jax",)
"""JAX compiles each operation anew for each shape, so that fewer programs are its."""
KINDS = (np.float64, np.float64, np.float64, np.int64, np.bool_)
MOST = 400
"""Operations of a program: each is a call of the library."""


@dataclass(frozen=True)
class Program:
    """A program of arrays, the library, and the dtype of the first input."""

    program: OfArrays
    library: str
    kind: type[Any]


def put(library: str, array: Any) -> Any:
    """Return a copy of an array in a library."""
    if library == "torch":
        return MODULES["torch"].tensor(array)
    import jax.numpy as jnp

    return jnp.asarray(array)


def check(program: Program) -> None:
    """Hold what a library computes to what NumPy computes."""
    asked = program.program.asked
    chosen = any(step.name in CHOSEN for step in program.program.steps)
    if MODULES[program.library] is None or len(asked.graph) > MOST:
        return
    if program.program.points == "wild" and (chosen or program.library == "jax"):
        return  # JAX takes subnormal numbers for 0
    (first, *others) = program.program.point(0, program.program.setting.batch)
    if program.kind is not np.float64:
        first = np.round(np.nan_to_num(first, nan=0.0, posinf=3.0, neginf=-2.0).clip(-3, 3))
    inputs = [first.astype(program.kind), *others]
    wanted = listed(asked(*inputs))
    wide = MODULES["jax"].enable_x64(True) if program.library == "jax" else nullcontext()
    with wide:
        try:
            results = listed(asked(*[put(program.library, array) for array in inputs]))
        except UnsupportedError:
            return
        found = [np.asarray(result) for result in results]
    for result in found:
        assert result.dtype == np.float64, f"a result is {result.dtype}"
    moves = lambda n: noise(asked, [first, *others], wanted, n)  # noqa: E731
    agree(found, wanted, moves, f"{program.library} against NumPy")
    if program.library == "torch":
        check_place(asked, inputs, found)


def check_place(asked: Function, inputs: list[Any], found: list[Any]) -> None:
    """Tensors of the device `meta`, which has shapes but no numbers, give tensors there."""
    results = listed(asked(*[MODULES["torch"].tensor(array, device="meta") for array in inputs]))
    for result, here in zip(results, found, strict=True):
        assert result.device.type == "meta", "a result is on the host"
        assert result.shape == here.shape, "a result has another shape there"


@st.composite
def _programs(draw: Draw) -> Program:
    """Draw a program of arrays for a library."""
    program = draw(programs())
    return Program(program, draw(st.sampled_from(LIBRARIES)), draw(st.sampled_from(KINDS)))


FAMILY = Family("libraries", _programs(), check, fixed=250, fresh=60)

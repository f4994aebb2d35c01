"""Random programs on arrays of a device: of CuPy on a GPU, of the strict stand-in elsewhere.

The programs are those of `arrays`. On a GPU they are compiled for the target ``cupy`` and called at
points, batches and again; everywhere, the plain evaluation computes with the device's arrays, and a
tape records them. Results stay on the device and are held to those of the host. Numbers may lie on
the host, and leaves too, which are then sent to the device and take their gradients on the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

import difflab as dl
from difflab.errors import UnsupportedError
from tests.differential.array_programs import CHOSEN, Draw, Step
from tests.differential.arrays import Program, formed, listed, programs, surroundings
from tests.differential.factored import FACTORED
from tests.differential.judging import agree, noise
from tests.differential.search import Family
from tests.support import standin


@cache
def gpu() -> Any:
    """Return CuPy, or None where it has no GPU."""
    try:
        import cupy

        cupy.zeros(1)
    except Exception:  # each driver fails in a way of its own
        return None
    return cupy


def sent(inputs: Sequence[Any], xp: Any) -> list[Any]:
    """Return arrays on the device."""
    return [xp.asarray(array) for array in inputs]


def fetched(results: Any, xp: Any) -> list[Any]:
    """Return results on the host; each was on the device, and none shares memory."""
    arrays = listed(results)
    for result in arrays:
        assert isinstance(result, xp.ndarray), f"a result is a {type(result)}"
    return [result.get() for result in arrays]


def stays(program: Program, place: int) -> bool:
    """Whether a leaf, or an input that is a number, lies on the host."""
    return bool(program.seed >> place & 1)


def numbers_stay(program: Program, inputs: Sequence[Any], xp: Any) -> list[Any]:
    """Return arrays on the device; beside them, some of the numbers lie on the host."""
    there = sent(inputs, xp)
    if not any(array.ndim for array in inputs):
        return there
    return [
        here if here.ndim == 0 and stays(program, place) else array
        for place, (here, array) in enumerate(zip(inputs, there, strict=True))
    ]


def check_plain(program: Program, xp: Any) -> None:
    """Hold the plain evaluation of arrays on the device to that of the host."""
    inputs = program.point(0, program.setting.batch)
    try:
        found = fetched(program.asked(*numbers_stay(program, inputs, xp)), xp)
    except UnsupportedError:  # it names what the device's library lacks
        return
    wanted = listed(program.asked(*inputs))
    agree(found, wanted, lambda n: noise(program.asked, inputs, wanted, n), "on the device")


def check_tape(program: Program, xp: Any) -> None:
    """Hold gradients of a tape on the device to those of the graph, on the host."""
    inputs = program.point(0)
    total = dl.trace(lambda *given: program.total(given, np), *inputs)
    gradient = dl.gradient(total, mode="reverse")
    here = [stays(program, place) for place in range(len(inputs))]
    leaves = [
        dl.tensor(array if stay else xp.asarray(array), requires_grad=True)
        for array, stay in zip(inputs, here, strict=True)
    ]
    try:
        total(*[leaf.to(xp) for leaf in leaves]).backward()
    except UnsupportedError:
        return
    parts = []
    for leaf, stay in zip(leaves, here, strict=True):
        bar = np.zeros(leaf.shape) if leaf.grad is None else leaf.grad.array()
        parts.append(np.ravel(bar if stay or leaf.grad is None else fetched(bar, xp)[0]))
    wanted = [gradient(*inputs)]
    moves = lambda n: noise(gradient, inputs, wanted, n)  # noqa: E731
    agree([np.concatenate(parts)], wanted, moves, "a tape on the device")


def check_kernels(program: Program, cupy: Any) -> None:
    """Hold the target `cupy` to the plain evaluation: twice, and again at the first point.

    A GPU adds what several threads put in one place in no fixed order, so that bits may differ.
    """
    setting = program.setting
    fast = dl.compile(formed(program), "cupy", packed=setting.packed)
    for number in (0, 1, 0):
        inputs = program.point(number, setting.batch)
        if setting.packed:
            flat = [array.reshape((*setting.batch, -1)) for array in inputs]
            given = sent([np.concatenate(flat, axis=-1)], cupy)
        else:
            given = sent(inputs, cupy)
        results = fast(*given)
        found = fetched(results, cupy)
        wanted = listed(program.asked(*inputs))
        moves = lambda n: noise(program.asked, inputs, wanted, n)  # noqa: B023, E731
        agree(found, wanted, moves, "cupy against the plain evaluation")
        spans = [(r.data.ptr, r.data.ptr + r.nbytes) for r in (*listed(results), *given) if r.size]
        for place, (start, end) in enumerate(spans):
            overlapping = any(start < other[1] and other[0] < end for other in spans[:place])
            assert not overlapping, "a result shares memory"


def check(program: Program) -> None:
    """Hold what a device computes to what the host computes."""
    if program.points == "wild" and any(step.name in CHOSEN for step in program.steps):
        return
    cupy = gpu()
    xp = standin if cupy is None else cupy
    check_plain(program, xp)
    if program.points != "wild":
        check_tape(program, xp)
    if cupy is not None:
        with surroundings(replace(program, setting=replace(program.setting, small=False))):
            check_kernels(program, cupy)


@st.composite
def _programs(draw: Draw) -> Program:
    """Draw a program of arrays; one in four computes the factors of a matrix."""
    program = draw(programs())
    if draw(st.integers(0, 3)):
        return program
    size, name = draw(st.integers(2, 3)), draw(st.sampled_from(tuple(FACTORED)))
    return replace(
        program,
        shapes=((size, size),),
        steps=(Step("factored", (0,), name), Step("sin", (1,))),
        points="normal",
    )


FAMILY = Family("devices", _programs(), check, fixed=300, fresh=60)

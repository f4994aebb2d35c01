"""Functions of matrices in machine code: the numbers of NumPy's functions, also where they fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab import solve
from difflab.execute.targets.llvm import libraries

pytest.importorskip("llvmlite")

RNG = np.random.default_rng(7)
MATRIX, RIGHT, COLUMN = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 3)), RNG.normal(size=4)
STACK, RIGHTS = RNG.normal(size=(5, 4, 4)), RNG.normal(size=(5, 4, 3))
POSITIVE = STACK @ np.swapaxes(STACK, 1, 2) + np.eye(4)

CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "one column": (lambda a, b: np.linalg.solve(a, 2.0 * b), (MATRIX, COLUMN)),
    "columns": (np.linalg.solve, (MATRIX, RIGHT)),
    "one row": (lambda a, b: np.linalg.solve(a, b), (MATRIX[:1, :1], COLUMN[:1])),
    "transposed": (lambda a, b: np.linalg.solve(a.T, b[::-1]), (MATRIX, RIGHT)),
    "stacks": (np.linalg.solve, (STACK, RIGHTS)),
    "a stack of right sides": (np.linalg.solve, (MATRIX, RIGHTS)),
    "a stack of matrices": (np.linalg.solve, (STACK, RIGHT)),
    "of a stack with axes": (
        lambda a, b: np.linalg.solve(a.reshape(5, 1, 4, 4), b.reshape(5, 1, 4, 3)),
        (STACK, RIGHTS),
    ),
    "inv": (lambda a: np.linalg.inv(a) @ a, (STACK,)),
    "det": (lambda a: np.linalg.det(a) + 1.0, (STACK,)),
    "cholesky": (lambda a: np.linalg.cholesky(a), (POSITIVE,)),
    "cholesky of a product": (lambda a: np.linalg.cholesky(a @ a.T + np.eye(4)), (MATRIX,)),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_numbers_are_those_of_numpy(name: str) -> None:
    function, args = CALLS[name]
    native = dl.compile(dl.trace(function, *args), target="native")
    assert native.reason.startswith("native for one point")
    np.testing.assert_allclose(native(*args), function(*args), rtol=1e-12, atol=1e-12)


def test_singular_matrices_are_nan_and_their_neighbours_are_not() -> None:
    stack = STACK.copy()
    stack[2] = 0.0
    wanted = np.linalg.solve(STACK, RIGHTS)
    wanted[2] = np.nan
    function = dl.trace(np.linalg.solve, stack, RIGHTS)
    for target in ("native", "numpy"):
        found = dl.compile(function, target=target)(stack, RIGHTS)
        np.testing.assert_array_equal(found, wanted)


def test_what_is_not_positive_definite_has_no_factor() -> None:
    function = dl.trace(np.linalg.cholesky, MATRIX)
    for target in ("native", "numpy"):
        assert np.isnan(dl.compile(function, target=target)(-np.eye(4))).all()


def test_derivatives_of_vector_solutions_are_machine_code() -> None:
    def root(p: Any) -> Any:
        return solve.root(lambda x, p: x**3 + x[::-1] - p, np.ones(2), p).x

    at = np.array([3.0, 1.5])
    compiled = dl.jit(dl.jacrev(root))
    x = root(at)
    # The implicit function theorem, by NumPy.
    wanted = np.linalg.inv(np.diag(3 * x**2) + np.eye(2)[::-1])
    np.testing.assert_allclose(compiled(at), wanted, rtol=1e-12)
    assert compiled.traces[0].compiled.reason.startswith("native")


def test_other_loops_than_numpys_are_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop of the inverse is no loop of the Cholesky factor."""
    inverse = libraries.MATRICES["inv"]
    other = libraries.MATRICES["cholesky"]._replace(ufunc=inverse.ufunc)
    monkeypatch.setitem(libraries.MATRICES, "cholesky", other)
    assert libraries.matrix_loop.__wrapped__("cholesky") == 0
    assert libraries.matrix_loop.__wrapped__("inv") > 0

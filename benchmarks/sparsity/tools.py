"""The packages: how each detects a pattern, colors it, and computes the Jacobian by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.sparsity.problems import PROBLEMS, Operations

__all__ = ["PACKAGES", "TOOLS", "Found"]


@dataclass(frozen=True)
class Found:
    """What a package has found.

    Attributes
    ----------
    pattern : csr_array of bool
        The entries that may differ from 0.
    forward, reverse : int or None
        The numbers of sweeps that the coloring needs; None without a coloring.
    detect_seconds, color_seconds : float or None
        Seconds of detection and of coloring; difflab's coloring includes building the graph of
        the compressed derivative.
    call : callable
        Maps a point to the dense Jacobian, or the values of its entries as `entries` expects.
    entries : callable
        Converts what `call` returns to a dense Jacobian.
    """

    pattern: Any
    forward: int | None
    reverse: int | None
    detect_seconds: float
    color_seconds: float | None
    call: Callable[[NDArray[np.float64]], Any]
    entries: Callable[[Any], NDArray[np.float64]]


def _difflab(name: str, x: NDArray[np.float64]) -> Found:
    from difflab.autodiff.sparsity import sparse_jacobian, sparsity
    from difflab.execute import compile
    from difflab.graph.trace import trace

    ops = Operations(np.concatenate, lambda v: np.sum(v)[None], np.sin)
    function = trace(lambda v: PROBLEMS[name](ops, v, len(x)), x)
    start = perf_counter()
    pattern = sparsity(function)
    detected = perf_counter()
    derivative = sparse_jacobian(function)  # detects again
    colored = perf_counter() - 2 * detected + start
    run = compile(derivative.function)
    forward, reverse = derivative.sweeps
    return Found(
        *(pattern, forward, reverse, detected - start, max(colored, 0.0)),
        *(run, lambda found: derivative.expand(found).toarray()),
    )


def _casadi(name: str, x: NDArray[np.float64]) -> Found:
    import casadi

    ops = Operations(lambda parts: casadi.vertcat(*parts), casadi.sum1, casadi.sin)
    symbol = casadi.SX.sym("x", len(x))
    y = PROBLEMS[name](ops, symbol, len(x))
    start = perf_counter()
    found = casadi.jacobian_sparsity(y, symbol)
    detected = perf_counter()
    forward, reverse = found.uni_coloring().size2(), found.T.uni_coloring().size2()
    colored = perf_counter()
    by_columns = forward <= reverse  # CasADi weights them; it uses one of the two
    run = casadi.Function("J", [symbol], [casadi.jacobian(y, symbol)])
    rows, columns = found.get_triplet()
    shape = (y.numel(), len(x))
    pattern = sparse.csr_array((np.ones(len(rows), bool), (rows, columns)), shape=shape)
    return Found(
        *(pattern, forward if by_columns else 0, 0 if by_columns else reverse),
        *(detected - start, colored - detected),
        *(run, lambda result: np.asarray(result.full())),
    )


def _asdex(name: str, x: NDArray[np.float64]) -> Found:
    import asdex
    import jax

    from difflab.methods.peers.jax import double

    xp = jax.numpy
    ops = Operations(xp.concatenate, lambda v: xp.sum(v)[None], xp.sin)

    def function(v: Any) -> Any:
        return PROBLEMS[name](ops, v, len(x))

    with double():
        point = xp.asarray(x)
        start = perf_counter()
        found = asdex.jacobian_sparsity(function, point)
        detected = perf_counter()
        coloring = asdex.jacobian_coloring_from_sparsity(found)
        colored = perf_counter()
        run = jax.jit(asdex.jacobian_from_coloring(function, coloring))
    shape = tuple(found.shape)
    flags = np.ones(len(found.rows), bool)
    pattern = sparse.csr_array((flags, (found.rows, found.cols)), shape=shape)
    by_columns = coloring.mode == "fwd"

    def call(at: NDArray[np.float64]) -> Any:
        with double():
            return jax.block_until_ready(run(at))

    def entries(result: Any) -> NDArray[np.float64]:
        with double():
            return np.asarray(result.todense())

    count = coloring.num_colors
    sweeps = (count, 0) if by_columns else (0, count)
    seconds = detected - start, colored - detected
    return Found(pattern, sweeps[0], sweeps[1], seconds[0], seconds[1], call, entries)


class _Node:
    """An expression of SparseDiffEngine, with Python's operators."""

    def __init__(self, node: Any, size: int, n: int) -> None:
        self.node, self.size, self.n = node, size, n

    def __getitem__(self, part: slice) -> _Node:
        from sparsediffpy import _sparsediffengine as engine

        indices = np.arange(self.size, dtype=np.int32)[part]
        node = engine.make_index(self.node, len(indices), 1, np.ascontiguousarray(indices))
        return _Node(node, len(indices), self.n)

    def _with(self, make: Callable[..., Any], other: _Node) -> _Node:
        return _Node(make(self.node, other.node), self.size, self.n)

    def __add__(self, other: _Node) -> _Node:
        from sparsediffpy import _sparsediffengine as engine

        return self._with(engine.make_add, other)

    def __neg__(self) -> _Node:
        from sparsediffpy import _sparsediffengine as engine

        return _Node(engine.make_neg(self.node), self.size, self.n)

    def __sub__(self, other: _Node) -> _Node:
        return self + (-other)

    def __mul__(self, other: _Node) -> _Node:
        from sparsediffpy import _sparsediffengine as engine

        return self._with(engine.make_multiply, other)

    def __rmul__(self, factor: float) -> _Node:
        from sparsediffpy import _sparsediffengine as engine

        number = engine.make_parameter(1, 1, -1, self.n, np.array([factor]))
        return _Node(engine.make_param_scalar_mult(number, self.node), self.size, self.n)

    def __pow__(self, exponent: float) -> _Node:
        from sparsediffpy import _sparsediffengine as engine

        return _Node(engine.make_power(self.node, float(exponent)), self.size, self.n)


def _sparsediffpy(name: str, x: NDArray[np.float64]) -> Found:
    from sparsediffpy import _sparsediffengine as engine

    n = len(x)

    def joined(parts: Any) -> _Node:
        node = engine.make_vstack([part.node for part in parts])
        return _Node(node, sum(part.size for part in parts), n)

    ops = Operations(
        joined,
        lambda v: _Node(engine.make_sum(v.node, -1), 1, n),
        lambda v: _Node(engine.make_sin(v.node), v.size, n),
    )
    symbol = _Node(engine.make_variable(n, 1, 0, n), n, n)
    y = PROBLEMS[name](ops, symbol, n)
    start = perf_counter()
    problem = engine.make_problem(engine.make_sum(symbol.node, -1), [y.node], False)
    engine.problem_init_jacobian(problem)
    engine.problem_init_jacobian_coo(problem)
    rows, columns, shape = engine.get_jacobian_sparsity_coo(problem)
    detected = perf_counter() - start
    pattern = sparse.csr_array((np.ones(len(rows), bool), (rows, columns)), shape=shape)

    def call(at: NDArray[np.float64]) -> Any:
        engine.problem_constraint_forward(problem, at)
        return engine.problem_eval_jacobian_vals(problem)

    def entries(found: Any) -> NDArray[np.float64]:
        dense = np.zeros(shape)
        dense[rows, columns] = found
        return dense

    return Found(pattern, None, None, detected, None, call, entries)


TOOLS: dict[str, Callable[[str, NDArray[np.float64]], Found]] = {
    "difflab": _difflab,
    "casadi": _casadi,
    "asdex": _asdex,
    "sparsediffpy": _sparsediffpy,
}
"""SparseDiffEngine multiplies sparse matrices by the chain rule and colors nothing."""
PACKAGES = {"difflab": (), "asdex": ("asdex", "jax")}
"""The distributions of a tool, by default the one of its name."""

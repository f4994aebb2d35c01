"""A function at a point, as difflab and its peers get it, with difflab's own answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.errors import InputError, UnsupportedError
from difflab.execute.long_loops import values_of
from difflab.graph.function import Function
from difflab.lab.environment import environment
from difflab.lab.judge import Judge
from difflab.lab.sweep import Cell
from difflab.methods.peers.peer import CallAdapter, Peer
from difflab.methods.timer import LoopCall

Array = NDArray[float64]

NEAR = 0.05
"""The relative distance of the points of a batch from the given point, per input."""
SEED_OF_BATCHES = 0


class Own(Peer):
    """difflab itself, compiled for one target."""

    title = "difflab"
    packages = ()

    def __init__(self, name: str) -> None:
        self.name = name
        self.target = name.partition("-")[2] or "auto"

    def missing(self) -> str | None:
        """Return None: a target that is unavailable raises when it compiles."""
        return None

    def start(self) -> None:
        """Import difflab's compiler."""
        import_module("difflab.autodiff")
        import_module("difflab.execute")

    def version(self) -> str:
        """Return difflab's version."""
        return str(environment()["difflab"])

    def formula(self, function: Function | None, timeout: float, order: int = 1) -> Function:
        """Return the function."""
        assert function is not None
        return function

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return the compiled value and gradient."""
        from difflab.autodiff import value_and_gradient
        from difflab.execute import compile
        from difflab.methods.automatic import into_memory

        if points is not None and self.target == "python":
            raise UnsupportedError("the target 'python' is for one point")
        fast = compile(value_and_gradient(function), self.target)

        def taken(x: Array) -> list[Any]:
            parts = function.split(x)
            return [np.ascontiguousarray(p) if p.ndim else float(p) for p in parts]

        def given(result: Any) -> tuple[Array, Array]:
            value, slope = result
            return np.asarray(value), np.asarray(slope)

        if points is not None or self.target not in ("auto", "native"):
            return CallAdapter(fast, taken, given)

        def loop(arguments: Sequence[Any]) -> LoopCall:
            packed = compile(fast.function, self.target, packed=True)
            point = np.concatenate([np.ravel(part) for part in arguments])
            return into_memory(packed, point) or LoopCall("", partial(fast, *arguments))

        return CallAdapter(fast, taken, given, faster=loop)


@dataclass
class PeerCase:
    """The scalar function to measure, and a point.

    Attributes
    ----------
    function : Function
    x : ndarray
        The packed point ``(n,)``.
    text, point : str
        The texts of function and point.
    """

    function: Function
    x: Array
    text: str
    point: str
    _own: dict[int, tuple[LoopCall, tuple[Array, Array]]] = field(default_factory=dict)
    _judge: Judge | None = None

    def __post_init__(self) -> None:
        if self.function.m != 1:
            raise InputError(
                f"value and gradient need a scalar function, not {self.function.m} outputs",
                text=self.function.text,
            )

    def sent(self) -> PeerCase:
        """Return the case for another process: judged already, and without compiled code."""
        return replace(self, _own={}, _judge=self.judge)

    def at(self, points: int) -> Array:
        """Return the point itself, ``(n,)``, or a batch that begins with it, ``(points, n)``.

        A neighbour outside the function's domain is replaced by the point itself.
        """
        if points == 1:
            return self.x
        spread = NEAR * np.where(self.x == 0, 1.0, np.abs(self.x))
        moves = np.random.default_rng(SEED_OF_BATCHES).uniform(-1, 1, (points, len(self.x)))
        batch = self.x + spread * moves
        batch[0] = self.x
        outside = ~np.isfinite(values_of(self.function)(batch)[:, 0])
        batch[outside] = self.x
        return batch

    def own(self, points: int) -> tuple[LoopCall, tuple[Array, Array]]:
        """Return difflab's call and its answer, made once for each size."""
        if points not in self._own:
            adapter = Own("difflab").adapter(self.function, None if points == 1 else points)
            arguments = adapter.arguments(self.at(points))
            answer = adapter.first(arguments)
            self._own[points] = adapter.loop(arguments), answer
        return self._own[points]

    def key(self, points: int, **contender: Cell) -> dict[str, Cell]:
        """Return the key of a row, in the order of the progress line."""
        return {"points": points, **contender, "expression": self.text, "point": self.point}

    @property
    def judge(self) -> Judge:
        """The referee at the point."""
        self._judge = self._judge or Judge(self.function, self.x)
        return self._judge

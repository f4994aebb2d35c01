"""A package: its transforms, how programs become its functions, and the process that computes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from difflab.methods import registry
from difflab.methods.peers.array_peer import ArrayPeer
from difflab.methods.peers.spelling import LibrarySpelling, written

if TYPE_CHECKING:
    from difflab.core.worker import Handlers, ReportProgress
    from difflab.graph.function import Function


Fn = Callable[[Any], Any]
Transform = Callable[[Fn, int, Any], Any]
"""Returns the value of the transformed function of an array ``(n,)``, from that function, n and x.

One that differentiates appends an axis of n elements to the result; any other one keeps the result.
"""


def named(path: str, **options: Any) -> Transform:
    """Return the transform that a package has under a name, such as ``jax:jit``, imported late."""
    return lambda f, n, x: resolve_name(path)(f, **options)(x)


def kept(f: Fn, n: int, x: Any) -> Any:
    """Keep the function; `Framework.call` applies the transform that the name states."""
    return f(x)


def _transformed(transform: Transform, f: Fn, n: int) -> Fn:
    return lambda x: transform(f, n, x)


@dataclass(frozen=True)
class Step:
    """A transform of every package, by its position among theirs.

    Attributes
    ----------
    derives : bool
        Whether it is one that differentiates.
    which : int
        Its position, modulo the number of such transforms.
    """

    derives: bool
    which: int


@dataclass(frozen=True)
class Framework:
    """A package's transforms by name.

    Attributes
    ----------
    name : str
        The peer's.
    derivatives : mapping
        Those that differentiate; the first one is the package's plain way.
    wrappers : mapping
        Those that keep the values.
    single : bool
        Whether it computes in float32, too.
    call : callable, optional
        ``call(transformed, x, names)`` computes the result at an array; by default the converted
        point is passed to `transformed`.
    spelling32 : callable, optional
        Return the spelling of programs in float32; by default that of float64.
    """

    name: str
    derivatives: Mapping[str, Transform]
    wrappers: Mapping[str, Transform]
    single: bool = True
    call: Callable[[Callable[[Any], Any], NDArray[Any], Sequence[str]], Any] | None = None
    spelling32: Callable[[], LibrarySpelling] | None = None

    @property
    def peer(self) -> ArrayPeer:
        """The package's method."""
        method = registry.peers()[self.name]
        assert isinstance(method, ArrayPeer)
        return method

    def names(self, steps: Sequence[Step]) -> tuple[str, ...]:
        """Return the names of the package's transforms, the innermost first."""
        chosen = []
        for step in steps:
            among = list(self.derivatives if step.derives else self.wrappers)
            chosen.append(among[step.which % len(among)])
        return tuple(chosen)

    def plain(self, order: int) -> tuple[str, ...]:
        """Return the names of the plain way to a derivative."""
        return (next(iter(self.derivatives)),) * order

    def computed(
        self, function: Function, names: Sequence[str], x: NDArray[np.float64], dtype: str
    ) -> NDArray[np.float64]:
        """Return the result of the composed transforms at a point, shaped ``(n, n, …)``."""
        transformed, n = self.scalar(function, dtype), function.n
        for name in names:
            transform = self.derivatives.get(name) or self.wrappers[name]
            transformed = _transformed(transform, transformed, n)
        point = x.astype(dtype)
        if self.call is not None:
            result = self.call(transformed, point, names)
        else:
            result = self.peer.array(transformed(self.lifted(point)))
        return np.asarray(result, dtype=np.float64)

    def lifted(self, x: NDArray[Any]) -> Any:
        """Return an array as one of the package, of the same dtype."""
        return self.peer.converted([x])[0]

    def scalar(self, function: Function, dtype: str) -> Callable[[Any], Any]:
        """Return a function of one number as code over an array of the flattened inputs."""
        peer = self.peer
        spelling = peer.spelling
        if dtype == "float32" and self.spelling32 is not None:
            spelling = self.spelling32()
        code, xp = written(function, spelling), spelling.xp
        parts, start = [], 0
        for shape in function.input_shapes:
            size = int(np.prod(shape))
            parts.append((slice(start, start + size) if shape else start, shape))
            start += size

        def run(x: Any) -> Any:
            values = [xp.reshape(x[part], shape) if shape else x[part] for part, shape in parts]
            return xp.reshape(code(*values)[0], ())

        return run


def spelled(names: Sequence[str]) -> str:
    """Return a composition as one writes it.

    Examples
    --------
    >>> spelled(("checkpoint", "grad"))
    'grad(checkpoint(f))'
    """
    text = "f"
    for name in names:
        text = f"{name}({text})"
    return text


FRAMEWORKS = ("jax", "torch", "tensorflow", "autograd", "pytensor", "tinygrad")
"""The packages, by the names of their peers."""


def framework(name: str) -> Framework:
    """Return a package's transforms; the package itself is not imported."""
    transforms: Framework = import_module(f"{__package__}.{name}").FRAMEWORK
    return transforms


def handlers(report: ReportProgress, name: str) -> Handlers:
    """Import a package, and return the handlers of its process."""
    from difflab.language import parse

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    package = framework(name)
    package.peer.ready()
    if name == "torch":
        import torch

        torch.set_num_threads(1)

    def answer(text: str, names: Sequence[str], x: Sequence[float], dtype: str) -> list[float]:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            derivative = package.computed(parse(text), names, np.array(x), dtype)
        flat: list[float] = derivative.reshape(-1).tolist()
        return flat

    return {"answer": answer}

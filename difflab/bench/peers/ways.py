"""The ways of executing one model: define-by-run, define-then-run, traced and compiled.

Each way is a peer whose adapter gives the value and the gradient, so that all are prepared, judged
and timed by the same code.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.bench.peers.case import Own
from difflab.core.environ import environment_variables
from difflab.core.primitive import Primitive
from difflab.errors import InputError
from difflab.methods.peers.array_peer import packed_gradient
from difflab.methods.peers.jax import Jax
from difflab.methods.peers.peer import Array, CallAdapter, Peer
from difflab.methods.peers.spelling import LibrarySpelling, written
from difflab.methods.peers.tensorflow import Tensorflow
from difflab.methods.peers.torch import Torch
from difflab.methods.registry import peers

if TYPE_CHECKING:
    from difflab.graph.function import Function


EXECUTIONS = ("define-by-run", "define-then-run", "traced", "compiled")
_TENSORS = "difflab tensors"
_CACHES = ("DIFFLAB_CACHE", "TORCHINDUCTOR_CACHE_DIR")
"""The environment's names of folders that keep compiled code."""


@dataclass(frozen=True)
class Way:
    """A way of executing the model.

    Attributes
    ----------
    name : str
        What its users call it.
    package : str
        The package.
    execution : str
        One of `EXECUTIONS`.
    peer : Peer
        What prepares it.
    baseline : str
        The name of the way without preparation that it is compared with: of the same package, or
        difflab's tensors for a package that has none.
    """

    name: str
    package: str
    execution: str
    peer: Peer
    baseline: str


class _Operations(LibrarySpelling):
    """Code of difflab's own operations, as one writes it for tensors and for traces."""

    def __init__(self) -> None:
        super().__init__(np)

    def operation(self, primitive: Primitive) -> Callable[..., Any]:
        """Return the operation."""
        return primitive


def _code(function: Function) -> Callable[..., Any]:
    """Return the only output of the function as code of difflab's operations."""
    run = written(function, _Operations())
    return lambda *values: run(*values)[0]


def _batched(function: Function, points: int) -> Callable[..., Any]:
    """Return the code of a batch of points, on arrays with one more axis."""
    from difflab.autodiff.transforms.vmap import vmap
    from difflab.graph.trace import trace

    examples = [np.ones((points, *shape)) for shape in function.input_shapes]
    return _code(trace(vmap(_code(function)), *examples))


class _Tensors(Own):
    """difflab's tensors and their tape."""

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return the code on tensors, and the sweep of its tape."""
        from difflab.eager.gradients import grad
        from difflab.eager.tensors.tensor import tensor

        code = _code(function) if points is None else _batched(function, points)
        ones = np.ones(() if points is None else points)

        def call(*tensors: Any) -> Any:
            value = code(*tensors)
            return value.detach(), grad(value, tensors, ones, allow_unused=True)

        def arguments(x: Array) -> Sequence[Any]:
            return [tensor(part, requires_grad=True) for part in function.split(x)]

        return CallAdapter(call, arguments, packed_gradient(function, points, np.asarray))


class _Graph(Own):
    """A Function of difflab, evaluated operation by operation."""

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return the Function of value and gradient."""
        from difflab.autodiff import value_and_gradient

        both = value_and_gradient(function)
        return CallAdapter(both, function.split, lambda result: result)


class _Jit(Own):
    """``dl.jit`` of ``dl.value_and_grad``, under ``dl.vmap`` for a batch."""

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return the function that is traced at its first call."""
        from difflab.autodiff.transforms.grad import value_and_grad
        from difflab.autodiff.transforms.vmap import vmap
        from difflab.execute.jit.jit import jit

        both = value_and_grad(_code(function), tuple(range(len(function.inputs))))
        call = jit(both if points is None else vmap(both))
        return CallAdapter(call, function.split, packed_gradient(function, points, np.asarray))


class _EagerJax(Jax):
    """JAX's transforms without ``jit``: every operation is dispatched by itself."""

    form = ""

    def compiled(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return `call`."""
        return call


class _EagerTensorflow(Tensorflow):
    """TensorFlow's ``GradientTape`` without a graph."""

    def compiled(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return `call`."""
        return call


class _TracedTorch(Torch):
    """``torch.jit.trace`` of the model, and PyTorch's backward pass through it."""

    title = "torch.jit.trace"

    def code(self, function: Function, points: int | None) -> Callable[..., Any]:
        """Return the traced code, after the two calls in which TorchScript optimises it."""
        import torch

        batch = () if points is None else (points,)
        examples = tuple(
            torch.ones((*batch, *shape), dtype=torch.float64, requires_grad=True)
            for shape in function.input_shapes
        )
        with warnings.catch_warnings():
            # torch.compile, which its deprecation names, is another way.
            warnings.filterwarnings("ignore", message="`torch.jit", category=DeprecationWarning)
            traced: Callable[..., Any] = torch.jit.trace(super().code(function, points), examples)
        for _ in range(2):
            traced(*examples).sum().backward()
        return traced


def _ways() -> Iterator[Way]:
    for name, execution, own in (
        (_TENSORS, "define-by-run", _Tensors("difflab")),
        ("difflab Function", "define-then-run", _Graph("difflab")),
        ("dl.jit", "traced", _Jit("difflab")),
        ("dl.compile numpy", "compiled", Own("difflab-numpy")),
        ("dl.compile native", "compiled", Own("difflab-native")),
    ):
        yield Way(name, "difflab", execution, own, _TENSORS)
    known: dict[str, Any] = dict(peers())
    for name, package, execution, peer, baseline in (
        ("PyTorch eager", "torch", "define-by-run", known["torch"], "PyTorch eager"),
        ("torch.jit.trace", "torch", "traced", _TracedTorch(), "PyTorch eager"),
        ("torch.compile", "torch", "compiled", known["torch-compile"], "PyTorch eager"),
        ("JAX eager", "jax", "define-by-run", _EagerJax(), "JAX eager"),
        ("jax.jit", "jax", "compiled", known["jax"], "JAX eager"),
        ("GradientTape", "tensorflow", "define-by-run", _EagerTensorflow(), "GradientTape"),
        ("tf.function", "tensorflow", "traced", known["tensorflow"], "GradientTape"),
        ("autograd", "autograd", "define-by-run", known["autograd"], "autograd"),
        ("CasADi", "casadi", "define-then-run", known["casadi"], _TENSORS),
        ("SymEngine", "symengine", "compiled", known["symengine"], _TENSORS),
        ("PyTensor", "pytensor", "compiled", known["pytensor"], _TENSORS),
    ):
        yield Way(name, package, execution, peer, baseline)


WAYS = {way.name: way for way in _ways()}
"""In the order of the table and the picture."""


OWN = tuple(way.name for way in WAYS.values() if way.package == "difflab")


def contenders(packages: Sequence[str] | None = None) -> dict[str, Way]:
    """Return difflab's ways and those of the named packages, by default of all installed ones.

    Raises
    ------
    InputError
        A package has no way here.

    Examples
    --------
    >>> list(contenders(["casadi"]))[-2:]
    ['dl.compile native', 'CasADi']
    """
    known = list(dict.fromkeys(way.package for way in WAYS.values()))
    for name in packages or ():
        if name not in known:
            raise InputError(
                f"there is no execution of '{name}' to measure", hint=f"one of {', '.join(known)}"
            )
    return {
        way.name: way
        for way in WAYS.values()
        if way.package == "difflab"
        or (way.peer.missing() is None if packages is None else way.package in packages)
    }


@contextmanager
def cold() -> Iterator[None]:
    """Give difflab and PyTorch empty disk caches, so that preparing includes compilation."""
    with (
        TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        environment_variables(dict.fromkeys(_CACHES, folder)),
    ):
        yield

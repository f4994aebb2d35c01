"""A function at a point, as difflab and its peers get it, and the ways of executing it.

They are define-by-run, define-then-run, traced and compiled. Each way is a peer whose adapter gives
the value and the gradient, so that all are prepared, judged and timed by the same code.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.primitive import Primitive
from difflab.core.system import environment_variables
from difflab.errors import InputError, UnsupportedError
from difflab.execute.long_loops import values_of
from difflab.graph.function import Function
from difflab.lab.environment import environment
from difflab.lab.judge import Judge
from difflab.lab.sweep import Cell
from difflab.methods.peers.array_peer import packed_gradient
from difflab.methods.peers.jax import Jax
from difflab.methods.peers.peer import CallAdapter, Peer
from difflab.methods.peers.spelling import LibrarySpelling, written
from difflab.methods.peers.tensorflow import Tensorflow
from difflab.methods.peers.torch import Torch
from difflab.methods.registry import peers
from difflab.methods.timer import LoopCall

Array = NDArray[np.float64]

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
        The name that its users use.
    package : str
        The package.
    execution : str
        One of `EXECUTIONS`.
    peer : Peer
        The peer that prepares it.
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
    methods: dict[str, Any] = dict(peers())
    for name, package, execution, peer, baseline in (
        ("PyTorch eager", "torch", "define-by-run", methods["torch"], "PyTorch eager"),
        ("torch.jit.trace", "torch", "traced", _TracedTorch(), "PyTorch eager"),
        ("torch.compile", "torch", "compiled", methods["torch-compile"], "PyTorch eager"),
        ("JAX eager", "jax", "define-by-run", _EagerJax(), "JAX eager"),
        ("jax.jit", "jax", "compiled", methods["jax"], "JAX eager"),
        ("GradientTape", "tensorflow", "define-by-run", _EagerTensorflow(), "GradientTape"),
        ("tf.function", "tensorflow", "traced", methods["tensorflow"], "GradientTape"),
        ("autograd", "autograd", "define-by-run", methods["autograd"], "autograd"),
        ("CasADi", "casadi", "define-then-run", methods["casadi"], _TENSORS),
        ("SymEngine", "symengine", "compiled", methods["symengine"], _TENSORS),
        ("PyTensor", "pytensor", "compiled", methods["pytensor"], _TENSORS),
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
    available = list(dict.fromkeys(way.package for way in WAYS.values()))
    for name in packages or ():
        if name not in available:
            raise InputError(
                f"there is no execution of '{name}' to measure",
                hint=f"one of {', '.join(available)}",
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

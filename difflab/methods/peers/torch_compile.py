"""``torch.compile``: PyTorch's derivative, traced as one graph and compiled by Inductor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.errors import UnsupportedError
from difflab.methods.peers.array_peer import by_rows
from difflab.methods.peers.peer import CallAdapter, PeerCall
from difflab.methods.peers.torch import Torch

if TYPE_CHECKING:
    from difflab.graph.function import Function
    from difflab.methods.protocol import Problem


class TorchCompile(Torch):
    """``torch.func.vjp`` under ``torch.compile``, in float64."""

    name = "torch-compile"
    title = "torch.compile"
    package = "torch"
    dtypes: tuple[str, ...] = ()
    summary = "torch.compile: PyTorch's vjp, compiled to C++ by Inductor, in float64"
    columns = ("torch",)

    def of_code(self, problem: Problem) -> PeerCall:
        """Refuse Python code without a graph: it is not compiled."""
        raise UnsupportedError(f"{self.title} needs a formula, and this is Python code")

    def differentiated(self, flat: Callable[[Any], Any], n: int, m: int, order: int) -> PeerCall:
        """Return the compiled pullback of the function or of its gradient, called per row."""
        import torch

        point = torch.ones(n, dtype=torch.float64)
        if order == 0:
            value = self.compiled(flat, (point,))
            return lambda x: self.array(value(torch.tensor(x)))
        traced = flat if order == 1 else torch.func.grad(lambda x: flat(x)[0])
        rows = m if order == 1 else n
        cotangent = np.ones(rows)
        pullback = self.compiled(
            lambda x, v: torch.func.vjp(traced, x)[1](v)[0],
            (point, torch.from_numpy(cotangent)),
        )
        return by_rows(
            lambda x, v: self.array(pullback(torch.tensor(x), torch.from_numpy(v))), rows
        )

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return the compiled value and pullback; a batch is an axis of the inputs."""
        import torch

        code = self.written(function)
        batch = () if points is None else (points,)
        ones = torch.ones(batch, dtype=torch.float64)

        def both(*tensors: Any) -> Any:
            value, pullback = torch.func.vjp(lambda *xs: code(*xs)[0], *tensors)
            return value, pullback(ones)

        examples = [torch.ones((*batch, *shape)).double() for shape in function.input_shapes]
        return self.adapted(function, points, self.compiled(both, examples))

    def compiled(self, call: Callable[..., Any], examples: Sequence[Any]) -> Callable[..., Any]:
        """Return `call` traced for arguments of the shapes of `examples`, and compiled.

        Tracing first makes a code object of its own: ``torch.compile`` returns to eager
        execution, silently, after eight compilations of one code object.
        """
        import torch
        from torch.fx.experimental.proxy_tensor import make_fx

        compiled: Callable[..., Any] = torch.compile(make_fx(call)(*examples), fullgraph=True)
        return compiled


TORCH_COMPILE = TorchCompile()

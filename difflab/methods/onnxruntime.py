"""ONNX Runtime: difflab's derivative, exported to ONNX and run by a session.

It executes, and has no derivatives of its own at inference. The derivative is that of reverse mode,
so that it tests the export and the kernels of the runtime.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.errors import UnsupportedError
from difflab.methods.peers.peer import Array, CallAdapter, Peer, PeerCall

if TYPE_CHECKING:
    from difflab.graph.function import Function


class OnnxRuntime(Peer):
    """A session of ONNX Runtime's provider for processors, on one thread."""

    name = "onnxruntime"
    title = "ONNX Runtime"
    modules = ("onnx",)
    packages = ("onnxruntime", "onnx")
    summary = "ONNX Runtime: difflab's derivative as an ONNX model, in float64"
    columns = ("difflab",)

    def own(self, code: str, inputs: Sequence[str], order: int) -> PeerCall:
        """Return value, gradient or Hessian of a formula, exported and loaded."""
        from difflab.language import parse

        self.ready()
        function = parse(code)
        if order:
            return self.derivative(function, order)
        run = self._session(function)
        return lambda x: run(function.split(x))[0]

    def derivative(self, function: Function, order: int) -> PeerCall:
        """Return the Jacobian or Hessian, exported and loaded."""
        from difflab.autodiff import hessian, jacobian

        derivative = jacobian(function, mode="reverse") if order == 1 else hessian(function)
        run = self._session(derivative)
        return lambda x: run(function.split(x))[0]

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return value and gradient in one session; a batch is an axis of the inputs."""
        from difflab.autodiff import value_and_gradient

        both = value_and_gradient(function)
        run = self._session(both if points is None else _batched(both, points))

        def arguments(x: Array) -> list[Any]:
            return [list(map(np.ascontiguousarray, function.split(x)))]

        batch = () if points is None else (points,)

        def result(arrays: Any) -> tuple[Array, Array]:
            return arrays[0].reshape(batch), arrays[1].reshape((*batch, function.n))

        return CallAdapter(run, arguments, result)

    def _session(self, function: Function) -> Any:
        """Return the exported function as a call with a list of its inputs."""
        import onnxruntime

        from difflab.interop.formats.onnx import to_onnx

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        text = to_onnx(function).SerializeToString()
        try:
            session = onnxruntime.InferenceSession(text, options, ["CPUExecutionProvider"])
        except Exception as error:  # its exceptions have no class in common
            raise UnsupportedError(f"ONNX Runtime does not load the model: {error}") from error
        names = [entry.name for entry in session.get_inputs()]
        wanted = set(names)

        def call(values: list[Any]) -> Any:
            given: Mapping[str, Any] = dict(zip(function.inputs, values, strict=True))
            feeds = {name: np.asarray(given[name], float) for name in wanted}
            return session.run(None, feeds)

        return call


def _batched(function: Function, points: int) -> Function:
    """Return the function of a batch of points."""
    from difflab.autodiff.transforms.vmap import vmap
    from difflab.graph.trace import trace

    examples = [np.ones((points, *shape)) for shape in function.input_shapes]
    return trace(vmap(lambda *xs: function(*xs)), *examples)


ONNXRUNTIME = OnnxRuntime()

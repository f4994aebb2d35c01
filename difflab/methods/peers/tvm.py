"""TVM: Relax functions, whose pass `Gradient` writes the adjoint, compiled by LLVM.

Each input is a tensor over the points, and each operation one of Relax's on such tensors. The loss
that the pass differentiates is the sum of the outputs with a cotangent for each point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from difflab.errors import DifflabError, UnsupportedError
from difflab.methods.peers.kernel_peer import BatchPeer, Outputs, Pullback
from difflab.methods.peers.peer import Array
from difflab.methods.peers.scalar_peer import ScalarInterpreter, reductions, scalar_module
from difflab.methods.peers.spelling import RenamedModule


class Tvm(BatchPeer):
    """TVM's `relax.transform.Gradient` in its virtual machine, in float64."""

    name = "tvm"
    title = "TVM"
    packages = ("apache-tvm",)
    modules = ("tvm.relax",)
    summary = "TVM: relax.transform.Gradient, compiled by LLVM, in float64"
    codes: Mapping[str, str] = {
        "abs(x)": "op.abs(x)",
        "sqrt(x^2)": "op.sqrt(op.power(x, number(2.0)))",
        "relu(x)": "op.nn.relu(x)",
        "clip(x, 0, 1)": "op.clip(x, 0.0, 1.0)",
        "hypot(x, y)": "~ op.sqrt(op.add(op.multiply(x, x), op.multiply(y, y)))",
        "sqrt(x)": "op.sqrt(x)",
        "atan2(x, y)": "op.atan2(x, y)",
        "where(x > 0, sqrt(x), 0)": "op.where(op.greater(x, number(0.0)), op.sqrt(x), number(0.0))",
        "where(x == 0, 1, sin(x)/x)": (
            "op.where(op.equal(x, number(0.0)), number(1.0), op.divide(op.sin(x), x))"
        ),
        "max(x, y)": "op.maximum(x, y)",
        "min(x, y)": "op.minimum(x, y)",
        "max([x, y])": "op.max(op.stack([x, y]), 0)",
        "sort([x, y])[1]": "op.sum(op.split(op.sort(op.stack([x, y]), 0), 2)[1], 0)",
        "median([x, y])": "op.median(op.stack([x, y]), 0)[0]",
        "sign(x)": "op.sign(x)",
        "floor(x)": "op.floor(x)",
        "round(x)": "op.round(x)",
        "mod(x, y)": "op.floor_mod(x, y)",
        "x^y": "op.power(x, y)",
        "x^1.0": "op.power(x, number(1.0))",
        "x^2.0": "op.power(x, number(2.0))",
        "logaddexp(x, y)": "op.log_add_exp(x, y)",
        "softplus(x)": "op.nn.softplus(x)",
        "sigmoid(x)": "op.sigmoid(x)",
        "log(sigmoid(x))": "~ op.log(op.sigmoid(x))",
        "tanh(x)": "op.tanh(x)",
        "erf(x)": "op.erf(x)",
    }

    def names(self) -> Mapping[str, Any]:
        """Return Relax's operators, and the conversion of a scalar to a tensor."""
        from tvm import relax

        return {"op": relax.op, "number": _lifted}

    def batched(self, outputs: Outputs, n: int, m: int, size: int) -> Pullback:
        """Return the compiled function and its adjoint; the shapes in it are fixed."""
        value = _compiled(self, outputs, (n, m, size), "main")
        adjoint: list[Any] = []

        def run(points: Array, cotangents: Array | None) -> tuple[Array, Array]:
            if cotangents is None:
                return np.stack(value(points, np.ones((size, m)))[1:], axis=-1), np.empty(0)
            if not adjoint:
                adjoint.append(_compiled(self, outputs, (n, m, size), "main_adjoint"))
            results = adjoint[0](points, cotangents)
            return np.stack(results[1 : m + 1], axis=-1), np.stack(results[m + 1 :], axis=-1)

        return run


def _compiled(
    peer: Tvm, outputs: Outputs, shape: tuple[int, int, int], name: str
) -> Callable[[Array, Array], list[Array]]:
    """Return the loss and the outputs, followed for the adjoint by the gradients."""
    import tvm
    from tvm import relax

    try:
        module = _module(peer, outputs, *shape)
        if name != "main":
            # The weights are inputs too, whose gradients nobody asked for.
            inputs = module["main"].params[: shape[0]]
            module = relax.transform.Gradient("main", require_grads=list(inputs))(module)
        machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    except DifflabError:
        raise
    except Exception as error:  # TVM's exceptions have no class in common
        text = str(error).strip().splitlines() or [type(error).__name__]
        what = "does not compute" if name == "main" else "has no rule of Gradient for"
        raise UnsupportedError(f"TVM {what} this function: {text[-1]}") from error

    def run(points: Array, cotangents: Array) -> list[Array]:
        columns = [*points.T, *cotangents.T]
        results = machine[name](*[tvm.runtime.tensor(np.array(column)) for column in columns])
        return [np.array(part.numpy()) for part in _leaves(results)]

    return run


def _leaves(tree: Any) -> list[Any]:
    if hasattr(tree, "numpy"):
        return [tree]
    return [leaf for part in tree for leaf in _leaves(part)]


def _module(peer: Tvm, outputs: Outputs, n: int, m: int, size: int) -> Any:
    """Return the function of inputs and weights, which returns the loss and the outputs."""
    from tvm import relax
    from tvm.script import relax as script

    kind = script.Tensor((size,), "float64")
    builder, op = relax.BlockBuilder(), relax.op
    inputs = [relax.Var(f"x{k}", kind) for k in range(n)]
    weights = [relax.Var(f"w{j}", kind) for j in range(m)]
    with builder.function("main", [*inputs, *weights]):
        with builder.dataflow():
            nodes = outputs(inputs, _interpreter(peer.title, builder))
            shaped = [builder.emit(op.broadcast_to(_lifted(y), (size,))) for y in nodes]
            terms = [op.sum(op.multiply(y, w)) for y, w in zip(shaped, weights, strict=True)]
            loss = builder.emit(reduce(op.add, terms))
            results = [builder.emit_output(part) for part in (loss, *shaped)]
        builder.emit_func_output(relax.Tuple(results))
    return builder.get()


def _interpreter(title: str, builder: Any) -> ScalarInterpreter:
    """Return Relax's operations, each of which is a binding of the function."""
    from tvm import relax

    op = relax.op

    def bound(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: builder.emit(function(*map(_lifted, args)))

    own = {
        **{name: name for name in ("add", "divide", "multiply", "negative", "power", "subtract")},
        **{name: name for name in ("equal", "greater", "greater_equal", "less", "less_equal")},
        **{name: name for name in ("logical_and", "logical_not", "logical_or", "not_equal")},
        **{name: name for name in ("maximum", "minimum", "sign", "where", "abs", "floor", "ceil")},
        **{name: name for name in ("sqrt", "exp", "log", "sin", "cos", "tan", "sinh", "cosh")},
        "tanh": "tanh",
        "arccos": "acos",
        "arccosh": "acosh",
        "arcsin": "asin",
        "arcsinh": "asinh",
        "arctan": "atan",
        "arctan2": "atan2",
        "arctanh": "atanh",
        "logaddexp": "log_add_exp",
        "mod": "floor_mod",
        "rint": "round",
        "Max": "maximum",
        "Min": "minimum",
    }
    names: dict[str, Any] = {name: bound(getattr(op, word)) for name, word in own.items()}
    names |= {
        "clip": lambda x, low, high: names["minimum"](names["maximum"](x, low), high),
        "exp2": lambda x: names["exp"](names["multiply"](x, math.log(2.0))),
        "hypot": bound(lambda a, b: op.sqrt(op.add(op.multiply(a, a), op.multiply(b, b)))),
        "log2": bound(lambda x: op.divide(op.log(x), _lifted(math.log(2.0)))),
        "log10": bound(lambda x: op.divide(op.log(x), _lifted(math.log(10.0)))),
        "special": RenamedModule(title, object(), {"erf": bound(op.erf)}),
    }
    rows = {"relu": bound(op.nn.relu), "sigmoid": bound(op.sigmoid)}
    xp = scalar_module(title, object(), names)
    return ScalarInterpreter(title, xp, _lifted, rows, reductions(xp))


def _lifted(value: Any) -> Any:
    """Return a number as a constant of float64, and an expression as it is."""
    from tvm import relax

    return relax.const(value, "float64") if isinstance(value, int | float) else value


TVM = Tvm()

"""JAX's loops, choices and functions with derivative rules of their own, as nodes of graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from difflab import primitives as rows
from difflab.autodiff.control.branches import cond
from difflab.autodiff.control.loops import scan
from difflab.core.optional import require
from difflab.execute.while_loops import while_loop
from difflab.graph.custom.function import CustomFunction
from difflab.graph.node import Node
from difflab.graph.trace import trace
from difflab.interop.formats.readers import cleaned_name

Values = Sequence[Any]
Run = Callable[[Any, Values], list[Any]]
"""Evaluates a closed jaxpr."""


def _scan(run: Run, operands: Values, **params: Any) -> list[Any]:
    consts, carries = params["num_consts"], params["num_carry"]
    fixed, xs = list(operands[:consts]), list(operands[consts + carries :])

    def step(carry: list[Any], x: list[Any] | None) -> tuple[list[Any], list[Any]]:
        results = run(params["jaxpr"], [*fixed, *carry, *(x or [])])
        return results[:carries], results[carries:]

    first = list(operands[consts : consts + carries])
    last, ys = scan(step, first, xs or None, params["length"], params["reverse"])
    return [*last, *ys]


def _while(run: Run, operands: Values, **params: Any) -> list[Any]:
    test, body = params["cond_nconsts"], params["body_nconsts"]
    of_test, of_body = list(operands[:test]), list(operands[test : test + body])
    results: list[Any] = while_loop(
        lambda value: run(params["cond_jaxpr"], [*of_test, *value])[0],
        lambda value: run(params["body_jaxpr"], [*of_body, *value]),
        list(operands[test + body :]),
    )
    return results


def _cond(run: Run, operands: Values, **params: Any) -> list[Any]:
    """Choose by the number of a branch: the last one, unless an earlier one is chosen."""
    number, *values = operands
    *earlier, last = params["branches"]

    def branch(jaxpr: Any) -> Callable[..., list[Any]]:
        return lambda *args: run(jaxpr, args)

    chosen = branch(last)
    for index, jaxpr in reversed(list(enumerate(earlier))):
        chosen = _either(number <= index, branch(jaxpr), chosen)
    return chosen(*values)


def _either(
    holds: Any, yes: Callable[..., list[Any]], no: Callable[..., list[Any]]
) -> Callable[..., list[Any]]:
    def chosen(*values: Any) -> list[Any]:
        results: list[Any] = cond(holds, yes, no, *values)
        return results

    return chosen


CONTROL: Mapping[str, Callable[..., list[Any]]] = {"cond": _cond, "scan": _scan, "while": _while}
"""Rules that are called with the evaluation of inner jaxprs, the operands and the parameters."""


CUSTOM = frozenset({"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"})


def custom_call(run: Run, step: Any, operands: Sequence[Any]) -> list[Any]:
    """Return the results of a call of a function with a derivative rule, on traced values."""
    inner = step.params.get("call_jaxpr", step.params.get("fun_jaxpr"))
    name, path = _definition(inner)
    if name in _ROWS and path.startswith(str(Path(str(require("jax").__file__)).parent)):
        return [_ROWS[name](*operands)]
    call = _Call(run, step, inner, operands)
    results = call.function(name).apply(*[operands[k] for k in call.traced])
    return list(results)


def _definition(closed: Any) -> tuple[str, str]:
    """Return the name of the function that a jaxpr is, and the file that defines it."""
    debug_info = getattr(closed.jaxpr, "debug_info", None)
    name, _, path = (getattr(debug_info, "func_src_info", None) or "").partition(" at ")
    return name, path


def _bound(step: Any, operands: Sequence[Any]) -> Sequence[Any]:
    """Return the results of a call by JAX, which knows its rules."""
    bound = step.primitive.get_bind_params(step.params)
    functions, params = bound if isinstance(bound, tuple) else ((), bound)  # before JAX 0.10
    results: Sequence[Any] = step.primitive.bind(*functions, *operands, **params)
    return results


def _logaddexp(a: Any, b: Any) -> Any:
    if not isinstance(b, Node) and not np.any(b):
        return rows.softplus(a)
    return rows.logaddexp(a, b)


_ROWS: Mapping[str, Callable[..., Any]] = {
    "logaddexp": _logaddexp,
    "relu": rows.relu,
    "xlog1py": rows.xlog1py,
    "xlogy": rows.xlogy,
}
"""Functions that JAX defines and that are rows, by name."""


class _Call:
    """A call and its rules.

    Attributes
    ----------
    traced : list of int
        The positions of the traced operands; the others are constants.
    smooth : list of int
        Those of `traced` that are floats: JAX has no derivatives by integers.
    """

    def __init__(self, run: Run, step: Any, inner: Any, operands: Sequence[Any]) -> None:
        self.run = run
        self.step = step
        self.inner = inner
        self.operands = list(operands)
        self.traced = [k for k, x in enumerate(operands) if isinstance(x, Node)]
        self.smooth = [k for k in self.traced if np.dtype(step.invars[k].aval.dtype).kind == "f"]
        self.outputs = [np.dtype(var.aval.dtype).kind == "f" for var in step.outvars]
        kinds = [var.aval.dtype for var in (*step.invars, *step.outvars)]
        self.wide = any(np.dtype(kind).itemsize == 8 for kind in kinds)
        self.known: dict[str, Any] = {}

    def function(self, name: str) -> type[CustomFunction]:
        """Return the call as a custom function of its traced operands."""
        # Reading it here names a primitive that has no counterpart.
        value = trace(
            lambda *args: tuple(self.run(self.inner, self._filled(self.traced, args))),
            *[np.zeros(self.operands[k].shape) for k in self.traced],
        )

        def forward(ctx: Any, *args: Any) -> tuple[Any, ...]:
            ctx.save_for_backward(*args)
            results = value(*args)
            return results if isinstance(results, tuple) else (results,)

        def jvp(ctx: Any, *dots: Any) -> tuple[Any, ...]:
            args = ctx.saved_tensors
            smooth_dots = [dots[self.traced.index(k)] for k in self.smooth]
            tangents = iter(self._rule("jvp", args, smooth_dots))
            return tuple(next(tangents) if smooth else None for smooth in self.outputs)

        def backward(ctx: Any, *bars: Any) -> tuple[Any, ...]:
            args = ctx.saved_tensors
            smooth_bars = [bar for bar, smooth in zip(bars, self.outputs, strict=True) if smooth]
            cotangents = dict(zip(self.smooth, self._rule("vjp", args, smooth_bars), strict=True))
            return tuple(cotangents.get(k) for k in self.traced)

        members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        if self.step.primitive.name == "custom_jvp_call":
            members["jvp"] = staticmethod(jvp)
        return type(cleaned_name(name).strip("_") or "custom", (CustomFunction,), members)

    def _filled(self, positions: Sequence[int], values: Sequence[Any]) -> list[Any]:
        """Return the operands with some replaced."""
        operands = list(self.operands)
        for position, value in zip(positions, values, strict=True):
            operands[position] = value
        return operands

    def _rule(self, kind: str, args: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        """Return tangents of the outputs, or cotangents of the operands."""
        jax = require("jax")
        if kind not in self.known:
            with jax.enable_x64(self.wide):  # the rule is code that runs again
                self.known[kind] = self._recorded(jax, kind)
        with jax.enable_x64(True), np.errstate(all="ignore"):
            return self.run(self.known[kind], [*self._filled(self.traced, args), *values])

    def _recorded(self, jax: Any, kind: str) -> Any:
        """Return a rule as a jaxpr of the operands, and of tangents or cotangents."""
        count = len(self.operands)

        def parts(values: Sequence[Any]) -> tuple[Callable[..., list[Any]], list[Any]]:
            def called(*chosen: Any) -> list[Any]:
                filled = list(values)
                for position, value in zip(self.smooth, chosen, strict=True):
                    filled[position] = value
                outputs = _bound(self.step, filled)
                return [out for out, smooth in zip(outputs, self.outputs, strict=True) if smooth]

            return called, [values[position] for position in self.smooth]

        def pushed(*values: Any) -> Any:
            called, chosen = parts(values[:count])
            return jax.jvp(called, chosen, list(values[count:]))[1]

        def pulled(*values: Any) -> Any:
            called, chosen = parts(values[:count])
            return jax.vjp(called, *chosen)[1](list(values[count:]))

        shapes = [jax.ShapeDtypeStruct(var.aval.shape, var.aval.dtype) for var in self._vars(kind)]
        return jax.make_jaxpr(pushed if kind == "jvp" else pulled)(*shapes)

    def _vars(self, kind: str) -> list[Any]:
        """Return the variables of the operands, and those that have tangents or cotangents."""
        step = self.step
        if kind == "jvp":
            return [*step.invars, *(step.invars[k] for k in self.smooth)]
        smooth = zip(step.outvars, self.outputs, strict=True)
        return [*step.invars, *(var for var, keep in smooth if keep)]

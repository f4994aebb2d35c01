"""The same derivative by each package, through its fastest call, which writes to given memory."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from benchmarks.points.programs import Array, Case
from difflab.methods.timer import LoopCall

__all__ = ["TOOLS", "Ready"]


class Ready(NamedTuple):
    """A call, and its result after a call: value and derivatives side by side, for each point."""

    call: LoopCall
    result: Callable[[], Array]


def _difflab(case: Case) -> Ready:
    import difflab as dl
    from difflab.methods.automatic import into_memory

    x = case.x()
    point = x if case.points == 1 else x[0]

    def code(*x: Any) -> Any:
        found = case.code(np, x)
        return found[0] if len(found) == 1 else tuple(found)

    derivatives: dict[str, Callable[..., Any]] = {
        "jacobian": dl.jacobian,
        "hessian": dl.hessian,
        "value and gradient": dl.value_and_gradient,
    }
    fast = dl.compile(derivatives[case.kind](dl.trace(code, *point)), packed=True)
    if case.points > 1:
        batch = dl.compile(fast.function, "native")
        columns = [np.ascontiguousarray(column) for column in x.T]
        result = batch(*columns)
        call = LoopCall("fast(x1, x2, out=result)", lambda: batch(*columns, out=result))
        return Ready(call, lambda: np.column_stack(result))
    loop = into_memory(fast, x) or LoopCall("fast(x)", lambda: fast(x))
    return Ready(loop, lambda: _flat(loop()))


def _flat(found: Any) -> Array:
    parts = found if isinstance(found, tuple) else (found,)
    return np.concatenate([np.ravel(part) for part in parts])


def _casadi(case: Case) -> Ready:
    import casadi

    s = casadi.SX.sym("x", case.inputs)
    outputs = casadi.vertcat(*case.code(casadi, casadi.vertsplit(s)))
    if case.kind == "hessian":
        found = casadi.hessian(outputs, s)[0]
    elif case.kind == "jacobian":
        found = casadi.jacobian(outputs, s).T  # CasADi stores matrices by columns
    else:
        found = casadi.vertcat(outputs, casadi.gradient(outputs, s))
    compiled = casadi.Function("f", [s], [casadi.densify(found)])
    if case.points > 1:
        compiled = compiled.map(case.points)
    x = case.x()
    result = np.zeros((case.points, int(np.prod(case.shape()))))
    buffer: Any
    buffer, run = compiled.buffer()
    buffer.set_arg(0, x.reshape(-1).data)
    buffer.set_res(0, result.reshape(-1).data)
    vars(run)["kept"] = buffer, compiled, x
    shown = result if case.points > 1 else result[0]
    return Ready(LoopCall("Function.buffer()", run), lambda: shown)


def _heyoka(case: Case) -> Ready:
    heyoka = import_module("heyoka")
    names = [f"x{k:03}" for k in range(case.inputs)]  # sorted by name, as heyoka sorts variables
    variables = list(heyoka.make_vars(*names)) if case.inputs > 1 else [heyoka.make_vars(*names)]
    functions = SimpleNamespace(
        **{name: getattr(heyoka, name) for name in ("log", "sin", "cos", "exp")}
    )
    outputs = [
        heyoka.expression(one) if isinstance(one, float) else one
        for one in case.code(functions, variables)
    ]
    order = 2 if case.kind == "hessian" else 1
    tensors = heyoka.diff_tensors(outputs, diff_args=variables, diff_order=order)
    if case.kind == "hessian":
        found = list(np.ravel(tensors.hessian(0)))
    elif case.kind == "jacobian":
        found = list(np.ravel(tensors.jacobian))
    else:
        found = [*outputs, *tensors.gradient]
    compiled = heyoka.cfunc(found, vars=variables)
    x = case.x()
    if case.points == 1:
        result = np.zeros(len(found))
        call = LoopCall("cfunc(x, outputs=result)", lambda: compiled(x, outputs=result))
        return Ready(call, lambda: result)
    columns, results = np.ascontiguousarray(x.T), np.zeros((len(found), case.points))
    call = LoopCall("cfunc(x, outputs=result)", lambda: compiled(columns, outputs=results))
    return Ready(call, lambda: results.T)


TOOLS: dict[str, Callable[[Case], Ready]] = {
    "difflab": _difflab,
    "casadi": _casadi,
    "heyoka": _heyoka,
}

"""The checkers of gradients, each called with its defaults.

A checker that tests a framework's own derivatives is given the function as a custom function of
that framework, whose rule is the claimed gradient.

- PyTorch: ``torch.autograd.gradcheck``, slow and with ``fast_mode=True``.
- JAX: ``jax.test_util.check_grads`` with ``order=1``, which has no default; in single precision
  unless the case is one of float64.
- SciPy: ``scipy.optimize.check_grad`` returns the norm of the error and leaves the threshold to
  its user; its documentation shows 3e-8 for a right gradient. Test suites compare with 1e-3 to
  1e-7; here it is 1e-5.
- autograd: ``autograd.test_util.check_grads``, whose default is both modes and two orders.
- PyTensor: ``pytensor.gradient.verify_grad``, interpreted, because compiling with Numba takes
  seconds a case and changes no verdict.
- numdifftools: ``numpy.allclose`` of its ``Gradient`` and the claimed one.
- difflab: ``difflab.testing.check_gradient``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from io import StringIO
from typing import Any

import numpy as np

from benchmarks.graders.corpus import GradientCase
from difflab.core.optional import require
from difflab.testing import GradientMismatch, GradientUnjudged, check_gradient

__all__ = ["GRADERS", "SCIPY_THRESHOLD", "Grader", "Judgement"]

SCIPY_THRESHOLD = 1e-5
"""The norm of the error up to which SciPy's users take a gradient for right."""
EXTRA = "graders"


@dataclass
class Judgement:
    """What a checker said of a case.

    Attributes
    ----------
    accepted : bool
        Whether it takes the gradient for right.
    evaluations : int
        The evaluations of f.
    unjudged : bool
        Whether it refuses the gradient because it cannot judge it.
    """

    accepted: bool = False
    evaluations: int = 0
    unjudged: bool = False


@dataclass(frozen=True)
class Grader:
    """A checker.

    Attributes
    ----------
    name : str
        As it is called by its users.
    package : str
        The distribution that it is part of.
    judge : callable
        ``judge(case, judgement)`` fills in the judgement. An exception that is no verdict is a
        failure of the checker.
    """

    name: str
    package: str
    judge: Callable[[GradientCase, Judgement], None]

    def load(self) -> None:
        """Import the package.

        Raises
        ------
        MissingDependencyError
            It is missing or broken; the message has the command that adds it.
        """
        require(self.package, EXTRA)

    def __call__(self, case: GradientCase) -> Judgement:
        """Return the checker's judgement of a case, without what it prints and warns of."""
        found = Judgement()
        state = np.random.get_state()  # noqa: NPY002 - some checkers draw from the global generator
        np.random.seed(case.number)  # noqa: NPY002
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"), redirect_stdout(StringIO()):
                warnings.simplefilter("ignore")
                self.judge(case, found)
        finally:
            np.random.set_state(state)  # noqa: NPY002
        return found


def _counted(function: Callable[..., Any], found: Judgement) -> Callable[..., Any]:
    """Return a function that counts its calls as evaluations."""

    def counting(*arguments: Any) -> Any:
        found.evaluations += 1
        return function(*arguments)

    return counting


def _torch(fast: bool) -> Callable[[GradientCase, Judgement], None]:
    def judge(case: GradientCase, found: Judgement) -> None:
        torch: Any = require("torch", EXTRA)
        checker: Any = require("torch.autograd.gradcheck", EXTRA)
        torch.manual_seed(case.number)
        value = _counted(case.value, found)

        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return value(torch, x)

        def backward(ctx: Any, y_bar: Any) -> Any:
            return y_bar * case.gradient(torch, *ctx.saved_tensors)

        rule = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        claimed: Any = type("Claimed", (torch.autograd.Function,), rule)
        x = torch.tensor(case.x, requires_grad=True)
        check = partial(checker.gradcheck, claimed.apply, (x,), fast_mode=fast)
        found.accepted = _passes(check, checker.GradcheckError)

    return judge


def _jax(case: GradientCase, found: Judgement) -> None:
    jax: Any = require("jax", EXTRA)
    check_grads = require("jax.test_util", EXTRA).check_grads
    xp: Any = require("jax.numpy", EXTRA)
    value = _counted(case.value, found)
    f = jax.custom_jvp(lambda x: value(xp, x))

    def rule(primals: Any, tangents: Any) -> Any:
        return f(*primals), xp.sum(case.gradient(xp, *primals) * tangents[0])

    f.defjvp(rule)
    with jax.enable_x64(case.dtype == "float64"):
        check = partial(check_grads, f, (xp.asarray(case.x),), order=1)
        found.accepted = _passes(check, AssertionError)


def _autograd(case: GradientCase, found: Judgement) -> None:
    extend: Any = require("autograd.extend", EXTRA)
    check_grads = require("autograd.test_util", EXTRA).check_grads
    xp: Any = require("autograd.numpy", EXTRA)
    value = _counted(case.value, found)
    f = extend.primitive(lambda x: value(xp, x))
    extend.defvjp(f, lambda y, x: lambda y_bar: y_bar * case.gradient(xp, x))
    extend.defjvp(f, lambda x_dot, y, x: xp.sum(case.gradient(xp, x) * x_dot))
    found.accepted = _passes(partial(check_grads(f), case.x), AssertionError)


def _passes(check: Callable[[], object], mismatch: type[Exception]) -> bool:
    """Return whether a check passes, which raises `mismatch` where the gradient is wrong."""
    try:
        check()
    except mismatch:
        return False
    return True


def _flat(case: GradientCase, found: Judgement) -> tuple[Any, Any, Any]:
    """Return value and gradient as functions of a float64 vector, and the point."""
    value = _counted(case.f, found)
    shape = case.x.shape
    return (
        lambda v: float(value(v.reshape(shape))),
        lambda v: np.asarray(case.g(v.reshape(shape)), dtype=float).ravel(),
        case.x.ravel().astype(float),
    )


def _scipy(case: GradientCase, found: Judgement) -> None:
    from scipy.optimize import check_grad

    found.accepted = bool(check_grad(*_flat(case, found)) < SCIPY_THRESHOLD)


def _numdifftools(case: GradientCase, found: Judgement) -> None:
    nd: Any = require("numdifftools", EXTRA)
    f, g, x = _flat(case, found)
    found.accepted = bool(np.allclose(nd.Gradient(f)(x), g(x)))


def _pytensor(case: GradientCase, found: Judgement) -> None:
    tensor: Any = require("pytensor.tensor", EXTRA)
    op: Any = require("pytensor.graph.op", EXTRA)
    apply: Any = require("pytensor.graph.basic", EXTRA).Apply
    checker: Any = require("pytensor.gradient", EXTRA)
    mode: Any = require("pytensor.compile.mode", EXTRA).Mode("py", "fast_compile")

    def made(perform: Callable[[Any], Any], scalar: bool, pullback: Any = None) -> Any:
        """Return an operation that computes with NumPy."""

        def make_node(self: Any, x: Any) -> Any:
            out = tensor.scalar(dtype=x.dtype) if scalar else x.type()
            return apply(self, [tensor.as_tensor(x)], [out])

        def run(self: Any, node: Any, inputs: Any, storage: Any) -> None:
            storage[0][0] = np.asarray(perform(inputs[0]), dtype=case.dtype)

        members = {"make_node": make_node, "perform": run, "pullback": pullback, "L_op": pullback}
        return type("Claimed", (op.Op,), {"__props__": (), **members})()

    gradient = made(case.g, scalar=False)

    def pullback(self: Any, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        return [cotangents[0] * gradient(inputs[0])]

    f = made(_counted(case.f, found), scalar=True, pullback=pullback)
    rng = np.random.default_rng(case.number)
    check = partial(checker.verify_grad, f, [case.x], rng=rng, mode=mode)
    found.accepted = _passes(check, checker.GradientError)


def _difflab(case: GradientCase, found: Judgement) -> None:
    try:
        check_gradient(_counted(case.f, found), case.g, case.x)
    except GradientMismatch as error:
        found.unjudged = isinstance(error, GradientUnjudged)
        return
    found.accepted = True


GRADERS: Mapping[str, Grader] = {
    grader.name: grader
    for grader in (
        Grader("difflab", "numpy", _difflab),
        Grader("torch gradcheck", "torch", _torch(fast=False)),
        Grader("torch gradcheck, fast", "torch", _torch(fast=True)),
        Grader("jax check_grads", "jax", _jax),
        Grader("autograd check_grads", "autograd", _autograd),
        Grader("scipy check_grad", "scipy", _scipy),
        Grader("pytensor verify_grad", "pytensor", _pytensor),
        Grader("numdifftools", "numdifftools", _numdifftools),
    )
}
"""Every checker by its name."""

"""Derivatives of functions as functions: gradient, Jacobian, Hessian and their products."""

from __future__ import annotations

import math
from dataclasses import replace

from difflab.autodiff.engine.argnums import pulled, pushed
from difflab.autodiff.engine.custom import goes_forward
from difflab.autodiff.engine.jacobian_entries import SweepMode, check_mode, derived, entries
from difflab.autodiff.functions.chosen import Names, derivative_by
from difflab.core.machine import require_memory
from difflab.errors import InputError
from difflab.graph.builder import Builder
from difflab.graph.checks import require_function
from difflab.graph.function import Function, inline
from difflab.graph.node import Node
from difflab.graph.repetition import LARGE, rolled
from difflab.graph.rewritten import selected
from difflab.primitives import pack, reshape

__all__ = [
    "gradient",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "require_scalar",
    "value_and_gradient",
    "vjp",
]


def gradient(function: Function, mode: SweepMode = "reverse", wrt: Names | None = None) -> Function:
    """Return ∇f as a function of the same inputs.

    ``∇f(x) = (∂f/∂x₁, …, ∂f/∂xₙ)`` with the inputs flattened in order. In reverse mode it
    needs at most a small constant times the operations of f, independently of n (Baur & Strassen,
    1983). A large f with many terms of the same form is differentiated on vectors of those terms.

    All inputs are differentiated by, in one array. `grad`, as in JAX, differentiates by the first
    input or argument alone unless it is given `argnums`, and also takes Python code.

    Parameters
    ----------
    function : Function
        With one scalar output.
    mode : {"reverse", "forward", "auto"}
        The direction of the sweep.
    wrt : str or sequence of str, optional
        The inputs to differentiate by, such as ``"x1"``, and elements of arrays, such as
        ``"w[0,2]"``, in the order of the names; all inputs when None.

    Returns
    -------
    Function
        Its output has the shape batch + (n,), where n counts the elements of the chosen inputs.

    Raises
    ------
    InputError
        The function has several outputs, `mode` is unknown, or `wrt` names no input.

    Examples
    --------
    >>> import difflab as dl
    >>> g = gradient(dl.parse("ln(x1) + x1*x2 - sin(x2)"))
    >>> g(2.0, 5.0).round(12).tolist()
    [5.5, 1.716337814537]
    >>> gradient(dl.parse("a*x^2 + b"), wrt="x")(2.0, 5.0, 3.0)
    array([12.])
    """
    require_function(function, "gradient", "dl.grad(f, argnums)(*arguments)")

    def transform(f: Function) -> Function:
        return _gradient(_repeating(f, mode), mode)

    return derivative_by(transform, function, wrt, "gradient")


def _gradient(function: Function, mode: SweepMode) -> Function:
    """Return ∇f, built node by node without rolling up repetition."""
    require_scalar(function, "gradient", "jacobian")
    slope = derived(*entries(function, mode), "gradient", fewest=mode == "auto")
    return replace(slope, arguments=function.arguments)


def _repeating(function: Function, mode: SweepMode) -> Function:
    """Return `function` with its repetition as vectors, where one sweep differentiates it."""
    check_mode(mode)
    if mode != "reverse":
        return function
    return replace(rolled(function, LARGE), arguments=function.arguments)


def value_and_gradient(
    function: Function, mode: SweepMode = "reverse", wrt: Names | None = None
) -> Function:
    """Return a function with the outputs f(x) and ∇f(x), which share their computation.

    Parameters
    ----------
    function : Function
        With one scalar output.
    mode : {"reverse", "forward", "auto"}
        The direction of the sweep.
    wrt : str or sequence of str, optional
        The inputs to differentiate by, such as ``"x1"``, and elements of arrays, such as
        ``"w[0,2]"``, in the order of the names; all inputs when None.

    Returns
    -------
    Function
        Its outputs have the shapes batch and batch + (n,).

    Raises
    ------
    InputError
        The function has several outputs, or `wrt` names no input.

    Examples
    --------
    >>> import difflab as dl
    >>> value, slope = value_and_gradient(dl.parse("x^2"))(3.0)
    >>> float(value), slope.tolist()
    (9.0, [6.0])
    """
    of_code = "dl.value_and_grad(f, argnums)(*arguments)"
    require_function(function, "value_and_gradient", of_code)
    require_scalar(function, "value_and_gradient", "jacobian")
    return derivative_by(
        lambda f: _value_and_gradient(f, mode), function, wrt, "value_and_gradient"
    )


def _value_and_gradient(function: Function, mode: SweepMode) -> Function:
    """Return f(x) and ∇f(x) by all inputs."""
    function = _repeating(function, mode)
    sweep, row = entries(function, mode)
    value = sweep.node(sweep.function.outputs[0])
    value = value if value.shape == () else reshape(value, shape=(), rank=value.ndim)
    return Function.build(
        sweep.builder,
        sweep.function.input_nodes,
        [value.id, row.id],
        [function.output_names[0], "gradient"],
        arguments=function.arguments,
    )


def jacobian(function: Function, mode: SweepMode = "auto", wrt: Names | None = None) -> Function:
    """Return J = ∂(outputs)/∂(inputs), both flattened, as a function of the same inputs.

    Reverse mode takes a sweep per output, forward mode a sweep per input. Mode "auto" builds
    both, and a third by vertex elimination, which multiplies the paths that several entries
    share once (Griewank & Reese, 1991), and uses the one with the fewest operations; where
    building them would take long it compares m with n. It also multiplies by powers of two
    last, which changes a result only by underflow or overflow.

    Parameters
    ----------
    function : Function
        With any outputs; m and n are the numbers of output and input elements.
    mode : {"auto", "forward", "reverse"}
        The direction of the sweeps.
    wrt : str or sequence of str, optional
        The inputs to differentiate by, such as ``"x1"``, and elements of arrays, such as
        ``"w[0,2]"``, in the order of the names; all inputs when None.

    Returns
    -------
    Function
        Its output has the shape batch + (m, n).

    Raises
    ------
    InputError
        `mode` is unknown, or `wrt` names no input.
    ResourceError
        The matrix requires more memory than is available.

    Examples
    --------
    >>> import difflab as dl
    >>> J = jacobian(dl.parse("[x*y, x + y]"))
    >>> J(2.0, 3.0).tolist()
    [[3.0, 2.0], [1.0, 1.0]]
    """
    require_function(function, "jacobian")
    return derivative_by(lambda f: _jacobian(f, mode), function, wrt, "jacobian")


def _jacobian(function: Function, mode: SweepMode) -> Function:
    """Return J by all inputs."""
    m, n = function.m, function.n
    require_memory(8 * m * n, f"the matrix of {m:,} × {n:,} derivatives")
    sweep, flat = entries(function, mode)
    matrix: Node = reshape(flat, shape=(m, n), rank=1)
    whole = derived(sweep, matrix, "jacobian", fewest=mode == "auto")
    return replace(whole, arguments=function.arguments)


def hessian(function: Function, wrt: Names | None = None) -> Function:
    """Return the matrix of second derivatives by all inputs.

    ``H = ∂(∇f)/∂x``: the Jacobian of the gradient graph by the mode with the fewest operations;
    of a large graph forward over reverse, and reverse over reverse where a custom function has
    no forward rule.

    Parameters
    ----------
    function : Function
        With one scalar output.
    wrt : str or sequence of str, optional
        The inputs to differentiate by, such as ``"x1"``, and elements of arrays, such as
        ``"w[0,2]"``, in the order of the names; all inputs when None.

    Returns
    -------
    Function
        Its output has the shape batch + (n, n).

    Raises
    ------
    InputError
        The function has several outputs, or `wrt` names no input.

    Examples
    --------
    >>> import difflab as dl
    >>> hessian(dl.parse("x^2*y"))(3.0, 5.0).tolist()
    [[10.0, 6.0], [6.0, 0.0]]
    """
    require_scalar(function, "hessian", "jacobian(jacobian(f))")
    return derivative_by(_hessian, function, wrt, "hessian", axes=2)


def _hessian(function: Function) -> Function:
    """Return the second derivatives by all inputs."""
    # On scalars even where terms repeat: a column involves few terms, but whole vectors otherwise.
    slope = _gradient(function, "reverse")
    return replace(_jacobian(slope, "auto"), output_names=("hessian",))


def jvp(function: Function) -> Function:
    """Return the function's values and their tangents ẏ = J ẋ along a direction.

    Parameters
    ----------
    function : Function
        With any inputs and outputs.

    Returns
    -------
    Function
        Inputs: those of `function`, then for each ``x`` a tangent ``x_dot`` of its shape.
        Outputs: those of `function`, then their tangents.

    Examples
    --------
    >>> import difflab as dl
    >>> push = jvp(dl.parse("x*y"))
    >>> push.inputs
    ('x', 'y', 'x_dot', 'y_dot')
    >>> [float(v) for v in push(2.0, 3.0, 1.0, 0.0)]
    [6.0, 3.0]
    """
    everything = tuple(range(len(function.inputs)))
    return pushed(rolled(function, LARGE), everything, tuple(range(len(function.outputs))))


def vjp(function: Function) -> Function:
    """Return the function's values and the cotangents x̄ = Jᵀ ȳ of its inputs.

    Parameters
    ----------
    function : Function
        With any inputs and outputs.

    Returns
    -------
    Function
        Inputs: those of `function`, then for each output ``y`` a cotangent ``y_bar``.
        Outputs: those of `function`, then a cotangent of every input.

    Examples
    --------
    >>> import difflab as dl
    >>> pull = vjp(dl.parse("z = x*y; z"))
    >>> pull.inputs
    ('x', 'y', 'z_bar')
    >>> [float(v) for v in pull(2.0, 3.0, 1.0)]
    [6.0, 3.0, 2.0]
    """
    everything = tuple(range(len(function.inputs)))
    return pulled(rolled(function, LARGE), everything, tuple(range(len(function.outputs))))


def hvp(function: Function) -> Function:
    """Return the product H ẋ of the Hessian with a direction, without the Hessian.

    Forward over reverse: the tangent of the gradient (Pearlmutter, 1994). Where a custom function
    has no forward rule it is reverse over reverse, ``Hᵀ ẋ``.

    Parameters
    ----------
    function : Function
        With one scalar output.

    Returns
    -------
    Function
        Inputs: those of `function`, then for each ``x`` a direction ``x_dot`` of its shape.
        The output has the shape batch + (n,).

    Raises
    ------
    InputError
        The function has several outputs.

    Examples
    --------
    >>> import difflab as dl
    >>> hvp(dl.parse("x^2*y"))(3.0, 5.0, 1.0, 0.0).tolist()
    [10.0, 6.0]
    """
    slope = gradient(function)
    if not goes_forward(slope):
        return _reverse_over_reverse(slope)
    pushed = jvp(slope)
    return selected(pushed, pushed.outputs[1:2], ["hvp"])


def _reverse_over_reverse(slope: Function) -> Function:
    """Return ``Hᵀ ẋ``, the gradient of ``ẋ·∇f``."""
    pulled_back = vjp(slope)
    builder = Builder()
    pairs = list(zip(slope.inputs, slope.input_shapes, strict=True))
    nodes = [Node(builder, builder.input(name, shape)) for name, shape in pairs]
    dots = [Node(builder, builder.input(f"{name}_dot", shape)) for name, shape in pairs]
    direction = pack(*dots, ranks=tuple([len(shape) for _, shape in pairs]))
    ids = [node.id for node in (*nodes, direction)]
    parts = inline(pulled_back, builder, ids)[len(slope.outputs) :]
    bars = [Node(builder, part) for part in parts]
    whole = pack(*bars, ranks=tuple([len(bar.shape) for bar in bars]))
    every = [node.id for node in (*nodes, *dots)]
    return Function.build(builder, every, [whole.id], ["hvp"])


def require_scalar(function: Function, transform: str, instead: str) -> None:
    """Raise `InputError` unless the function has exactly one output element."""
    if len(function.outputs) != 1 or math.prod(function.output_shapes[0]) != 1:
        raise InputError(
            f"{transform} needs a function with one output number, this one has {function.m}",
            hint=f"use {instead}",
        )

"""Derivatives of functions as functions: gradient, Jacobian, Hessian and their products.

May import the sweeps, `graph`, `errors`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Literal

from difflab.autodiff.forward import push_forward
from difflab.autodiff.reverse import pull_back
from difflab.autodiff.sweep import Sweep, spread
from difflab.errors import InputError
from difflab.graph.builder import Builder
from difflab.graph.counts import count
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.primitives import index, pack, reshape, scatter

__all__ = ["gradient", "hessian", "hvp", "jacobian", "jvp", "value_and_gradient", "vjp"]

Mode = Literal["forward", "reverse", "auto"]
MODES = ("forward", "reverse", "auto")

TRIAL_LIMIT = 200_000
"""Operations up to which mode "auto" builds both Jacobians and counts; beyond it estimates."""


def gradient(function: Function, mode: Mode = "reverse") -> Function:
    """Return ∇f as a function of the same inputs.

    ``∇f(x) = (∂f/∂x₁, …, ∂f/∂xₙ)`` with the inputs flattened in order. In reverse mode it
    takes at most a small constant times the operations of f, whatever n is (Baur & Strassen,
    1983).

    Parameters
    ----------
    function : Function
        With one output of one number.
    mode : {"reverse", "forward", "auto"}
        The direction of the sweep.

    Returns
    -------
    Function
        Its output has the shape batch + (n,).

    Raises
    ------
    InputError
        The function has several outputs, or `mode` is unknown.

    Examples
    --------
    >>> import difflab as dl
    >>> g = gradient(dl.parse("ln(x1) + x1*x2 - sin(x2)"))
    >>> g(2.0, 5.0).round(12).tolist()
    [5.5, 1.716337814537]
    """
    _require_scalar(function, "gradient", "jacobian")
    sweep, row = _entries(function, mode)
    return Function.build(sweep.builder, function.input_nodes, [row.id], ["gradient"])


def value_and_gradient(function: Function, mode: Mode = "reverse") -> Function:
    """Return a function with the outputs f(x) and ∇f(x), which share their computation.

    Parameters
    ----------
    function : Function
        With one output of one number.
    mode : {"reverse", "forward", "auto"}
        The direction of the sweep.

    Returns
    -------
    Function
        Its outputs have the shapes batch and batch + (n,).

    Raises
    ------
    InputError
        The function has several outputs.

    Examples
    --------
    >>> import difflab as dl
    >>> value, slope = value_and_gradient(dl.parse("x^2"))(3.0)
    >>> float(value), slope.tolist()
    (9.0, [6.0])
    """
    _require_scalar(function, "value_and_gradient", "jacobian")
    sweep, row = _entries(function, mode)
    value = sweep.node(function.outputs[0])
    value = value if value.shape == () else reshape(value, shape=(), rank=value.ndim)
    return Function.build(
        sweep.builder,
        function.input_nodes,
        [value.id, row.id],
        [function.output_names[0], "gradient"],
    )


def jacobian(function: Function, mode: Mode = "auto") -> Function:
    """Return J = ∂(outputs)/∂(inputs), both flattened, as a function of the same inputs.

    Reverse mode takes a sweep per output, forward mode a sweep per input. Mode "auto" counts
    the operations of both and takes the fewer; where building both would be long it compares
    m with n.

    Parameters
    ----------
    function : Function
        With any outputs; m and n count their numbers and those of the inputs.
    mode : {"auto", "forward", "reverse"}
        The direction of the sweeps.

    Returns
    -------
    Function
        Its output has the shape batch + (m, n).

    Raises
    ------
    InputError
        `mode` is unknown.

    Examples
    --------
    >>> import difflab as dl
    >>> J = jacobian(dl.parse("[x*y, x + y]"))
    >>> J(2.0, 3.0).tolist()
    [[3.0, 2.0], [1.0, 1.0]]
    """
    sweep, flat = _entries(function, mode)
    matrix: Node = reshape(flat, shape=(function.m, function.n), rank=1)
    return Function.build(sweep.builder, function.input_nodes, [matrix.id], ["jacobian"])


def hessian(function: Function) -> Function:
    """Return the matrix of second derivatives, forward over reverse.

    ``H = ∂(∇f)/∂x``: the Jacobian of the gradient graph.

    Parameters
    ----------
    function : Function
        With one output of one number.

    Returns
    -------
    Function
        Its output has the shape batch + (n, n).

    Raises
    ------
    InputError
        The function has several outputs.

    Examples
    --------
    >>> import difflab as dl
    >>> hessian(dl.parse("x^2*y"))(3.0, 5.0).tolist()
    [[10.0, 6.0], [6.0, 0.0]]
    """
    _require_scalar(function, "hessian", "jacobian(jacobian(f))")
    second = jacobian(gradient(function), "forward")
    return _renamed(second, "hessian")


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
    sweep = Sweep(function)
    seeds = _fresh_inputs(sweep, function.inputs, function.input_shapes, "_dot")
    tangents = push_forward(sweep, dict(zip(function.input_nodes, seeds, strict=True)))
    zero = sweep.constant(0)
    dots = [
        spread(tangents.get(node, zero), shape)
        for node, shape in zip(function.outputs, function.output_shapes, strict=True)
    ]
    return Function.build(
        sweep.builder,
        [*function.input_nodes, *(seed.id for seed in seeds)],
        [*function.outputs, *(dot.id for dot in dots)],
        [*function.output_names, *(f"{name}_dot" for name in function.output_names)],
    )


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
    sweep = Sweep(function)
    seeds = _fresh_inputs(sweep, function.output_names, function.output_shapes, "_bar")
    totals: dict[int, Node] = {}
    for number, seed in zip(function.outputs, seeds, strict=True):
        totals[number] = totals[number] + seed if number in totals else seed
    bars = _cotangents(sweep, totals)
    return Function.build(
        sweep.builder,
        [*function.input_nodes, *(seed.id for seed in seeds)],
        [*function.outputs, *(bar.id for bar in bars)],
        [*function.output_names, *(f"{name}_bar" for name in function.inputs)],
    )


def hvp(function: Function) -> Function:
    """Return the product H ẋ of the Hessian with a direction, without the Hessian.

    Forward over reverse: the tangent of the gradient (Pearlmutter, 1994).

    Parameters
    ----------
    function : Function
        With one output of one number.

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
    pushed = jvp(gradient(function))
    return Function.build(
        Sweep(pushed).builder, pushed.input_nodes, [pushed.outputs[1]], ["hvp"]
    )


def _entries(function: Function, mode: str) -> tuple[Sweep, Node]:
    """Return the m·n entries of the Jacobian, packed, by the sweeps that `mode` asks for."""
    if mode not in MODES:
        raise InputError(f"unknown mode '{mode}'", hint=f"one of {', '.join(MODES)}")
    if mode == "reverse":
        return _by_reverse(function)
    if mode == "forward":
        return _by_forward(function)
    if len(function.graph) * (function.n + function.m) > TRIAL_LIMIT:
        return _by_forward(function) if function.n < function.m else _by_reverse(function)
    return min(_by_reverse(function), _by_forward(function), key=_operations)


def _operations(entries: tuple[Sweep, Node]) -> int:
    """Count the operations that a Jacobian's entries need together."""
    sweep, packed = entries
    trial = Function.build(sweep.builder, sweep.function.input_nodes, [packed.id], ["trial"])
    return count(trial).operations


def _by_reverse(function: Function) -> tuple[Sweep, Node]:
    """Sweep back once per output number."""
    sweep = Sweep(function)
    bars: list[Node] = []
    for number, key in _output_numbers(sweep):
        seed = sweep.constant(1)
        if key != ():
            seed = scatter(seed, keys=(key,), shape=sweep.builder.shape(number))
        bars += _cotangents(sweep, {number: seed})
    return sweep, pack(*bars, ranks=tuple(bar.ndim for bar in bars))


def _by_forward(function: Function) -> tuple[Sweep, Node]:
    """Sweep forward once per input number."""
    sweep = Sweep(function)
    outputs = _output_numbers(sweep)
    columns: list[list[Node]] = []
    for source, shape in zip(function.input_nodes, function.input_shapes, strict=True):
        for key in _keys(shape):
            seed = sweep.constant(1)
            if shape != ():
                seed = scatter(seed, keys=(key,), shape=shape)
            columns.append(_numbers(sweep, push_forward(sweep, {source: seed}), outputs))
    entries = [column[row] for row in range(len(outputs)) for column in columns]
    return sweep, pack(*entries, ranks=(0,) * len(entries))


Key = tuple[int, ...]
Place = tuple[int, Key]


def _output_numbers(sweep: Sweep) -> list[Place]:
    """Return where each output number is: a node and the key into it."""
    places: list[Place] = []
    for output in sweep.function.outputs:
        places += _places(sweep.builder, output)
    return places


def _places(builder: Builder, node: int) -> list[Place]:
    """Return where the numbers of an array come from.

    What only gathers scalars, as a gradient does, is taken apart into those scalars.
    """
    shape = builder.shape(node)
    row = builder.primitive(node)
    if row is reshape:
        return _places(builder, builder.arguments(node)[0])
    if row is pack:
        return [place for part in builder.arguments(node) for place in _places(builder, part)]
    keys = _keys(shape)
    if row is scatter and set(keys).issuperset(builder.params(node)["keys"]):
        zero = (builder.constant(0), ())
        parts = zip(builder.params(node)["keys"], builder.arguments(node), strict=True)
        found: dict[Key, Place] = {key: (part, ()) for key, part in parts}
        return [found.get(key, zero) for key in keys]
    return [(node, key) for key in keys]


def _numbers(sweep: Sweep, tangents: dict[int, Node], places: list[Place]) -> list[Node]:
    """Return the tangents of output numbers."""
    zero = sweep.constant(0)
    taken: dict[int, dict[Key, Place]] = {}
    numbers = []
    for number, key in places:
        dot = tangents.get(number)
        if dot is None or key == ():
            numbers.append(zero if dot is None else dot)
            continue
        if number not in taken:
            whole = spread(dot, sweep.builder.shape(number))
            found = _places(sweep.builder, whole.id)
            taken[number] = dict(zip(_keys(whole.shape), found, strict=True))
        part, inner = taken[number][key]
        node = sweep.node(part)
        numbers.append(index(node, key=inner, rank=node.ndim) if inner else node)
    return numbers


def _keys(shape: Sequence[int]) -> list[Key]:
    """Return the index of every number of an array, in order."""
    return list(product(*map(range, shape)))


def _cotangents(sweep: Sweep, seeds: dict[int, Node]) -> list[Node]:
    """Return the cotangents of all inputs, of the inputs' shapes."""
    function = sweep.function
    bars = pull_back(sweep, seeds, function.input_nodes)
    zero = sweep.constant(0)
    return [
        spread(bars.get(node, zero), shape)
        for node, shape in zip(function.input_nodes, function.input_shapes, strict=True)
    ]


def _fresh_inputs(
    sweep: Sweep, names: Sequence[str], shapes: Sequence[tuple[int, ...]], suffix: str
) -> list[Node]:
    """Add an input for each name, with a suffix that collides with no input."""
    taken = set(sweep.function.inputs)
    while any(name + suffix in taken for name in names):
        suffix += "_"
    return [
        Node(sweep.builder, sweep.builder.input(name + suffix, shape))
        for name, shape in zip(names, shapes, strict=True)
    ]


def _require_scalar(function: Function, transform: str, instead: str) -> None:
    if len(function.outputs) != 1 or math.prod(function.output_shapes[0]) != 1:
        raise InputError(
            f"{transform} needs a function with one output number, this one has {function.m}",
            hint=f"use {instead}",
        )


def _renamed(function: Function, name: str) -> Function:
    return Function(function.graph, function.input_nodes, function.outputs, (name,))

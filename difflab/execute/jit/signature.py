"""The arguments of a call, traced or static, and a fast test for equal ones."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from difflab.core.conversions import without_parts
from difflab.errors import InputError
from difflab.graph.ir import Shape
from difflab.graph.pytree import flatten, leaf_paths, token_keys, unflatten
from difflab.graph.values import DOUBLE, SINGLE, WEAK, Precision

MISS = object()
"""Returned by a matcher for arguments that do not match."""
REAL = frozenset("fiub")
"""NumPy dtype kinds that are traced."""


class LeafType(NamedTuple):
    """The shape and the dtype that a trace assumes for a leaf.

    Examples
    --------
    >>> str(LeafType((2, 3), "float64")), str(LeafType((), "int64"))
    ('float64 (2, 3)', 'int64 scalar')
    """

    shape: Shape
    dtype: str

    @property
    def precision(self) -> Precision:
        """The precision of the traced value; scalars are weak, as Python scalars are."""
        if self.dtype == "float32":
            return SINGLE
        return DOUBLE if self.shape and self.dtype != "bool" else WEAK

    def __str__(self) -> str:
        return f"{self.dtype} {self.shape or 'scalar'}"


class Call:
    """The arguments of one call.

    Parameters
    ----------
    function : callable
        The user's function, for the names of its parameters.
    args, kwargs
        The arguments.
    static : tuple of int
        The positions of static arguments.

    Attributes
    ----------
    leaves : list
        The leaves of the other arguments.
    structure : Structure
        Their trees.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        static: tuple[int, ...],
    ) -> None:
        self.function = function
        self.args = tuple(args)
        self.static = tuple(position % len(args) for position in static if args)
        self.traced = [k for k in range(len(args)) if k not in self.static]
        trees = ([args[position] for position in self.traced], dict(kwargs))
        self.leaves, self.structure = flatten(trees)

    def paths(self) -> list[str]:
        """Return the expression of each leaf, such as ``params['w']``."""
        names = _parameter_names(self.function, len(self.args))
        expressions = []
        for path in leaf_paths(self.structure):
            group, _, rest = path[1:].partition("]")
            key, _, tail = rest[1:].partition("]")
            expressions.append((names[self.traced[int(key)]] if group == "0" else key[1:-1]) + tail)
        return expressions

    def shown(self, types: Sequence[LeafType]) -> dict[str, str]:
        """Return each argument by its expression: its shape and dtype, or its static value."""
        names = _parameter_names(self.function, len(self.args))
        static = {names[k]: f"{reprlib.repr(self.args[k])} (static)" for k in self.static}
        leaves = zip(self.paths(), map(str, types), strict=True)
        return {**static, **dict(leaves)}

    def is_recorded(self) -> bool:
        """Whether an argument is a traced value or a tensor, which records its operations."""
        return any(hasattr(leaf, "__difflab_apply__") for leaf in self.leaves)

    def types(self) -> tuple[LeafType, ...]:
        """Return the shape and dtype of each leaf.

        Raises
        ------
        InputError
            A leaf is neither a real scalar nor a real array.
        """
        types = tuple(map(_leaf_type, self.leaves))
        if None in types:
            position = types.index(None)
            value, path = self.leaves[position], self.paths()[position]
            without_parts(value, f"the argument {path} of jit")
            kind = getattr(value, "dtype", None) or type(value).__name__
            raise InputError(
                f"jit traces numbers and arrays, but {path} is {kind}",
                hint="name the position of the argument in static_argnums: "
                "it is then a constant, and another one is another trace",
            )
        return types  # type: ignore[return-value]  # None was refused

    def constants(self) -> tuple[Any, ...]:
        """Return the static arguments as a key: equal ones share a trace.

        Raises
        ------
        InputError
            One of them has no hash.
        """
        for position in self.static:
            try:
                hash(self.args[position])
            except TypeError as error:
                raise InputError(
                    f"static argument {position} of jit has no hash: {error}",
                    hint="pass a tuple for a list, or trace the argument",
                ) from None
        values = [self.args[position] for position in self.static]
        # repr distinguishes 0.0 from -0.0, and (1,) from (True,).
        return tuple((type(value), value, repr(value)) for value in values)

    def with_leaves(self, leaves: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments with other leaves."""
        positional, named = unflatten(self.structure, leaves)
        args = list(self.args)
        for position, value in zip(self.traced, positional, strict=True):
            args[position] = value
        return args, named


def _leaf_type(leaf: Any) -> LeafType | None:
    if isinstance(leaf, bool | int | float):
        return LeafType((), np.dtype(type(leaf)).name)
    dtype = getattr(leaf, "dtype", None)
    if getattr(dtype, "kind", "") in REAL:
        return LeafType(tuple(leaf.shape), str(dtype))
    return None


def _parameter_names(function: Callable[..., Any], count: int) -> list[str]:
    """Return a name for each positional argument."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return [f"argument {k + 1}" for k in range(count)]
    names: list[str] = []
    for parameter in parameters:
        if parameter.kind == parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}[{k}]" for k in range(count - len(names))]
        elif parameter.kind != parameter.KEYWORD_ONLY and parameter.kind != parameter.VAR_KEYWORD:
            names.append(parameter.name)
    return names + [f"argument {k + 1}" for k in range(len(names), count)]


def matcher(call: Call, types: Sequence[LeafType]) -> Callable[[Any, Any], Any]:
    """Return a function of `args` and `kwargs` that gives the leaves, or MISS.

    It is generated code that accepts arguments like those of `call`, if its leaves are arrays of
    float64 or float32 and Python numbers; it answers MISS to everything that needs a conversion.

    Examples
    --------
    >>> call = Call(lambda p, x: None, [{"w": np.ones(2)}, 3.0], {}, ())
    >>> match = matcher(call, call.types())
    >>> match(({"w": np.zeros(2)}, 1.0), {})
    (array([0., 0.]), 1.0)
    >>> match(({"w": np.zeros(3)}, 1.0), {}) is MISS
    True
    """
    scope: dict[str, Any] = {"MISS": MISS, "ndarray": np.ndarray, "float64": np.dtype(np.float64)}
    scope |= {"float32": np.dtype(np.float32), "scalar": np.float64}
    lines = [f"if len(args) != {len(call.args)}: return MISS"]
    for position in call.static:
        scope[f"s{position}"] = value = call.args[position]
        same = f"args[{position}] is s{position}"
        if isinstance(value, int | str):
            scope[f"k_s{position}"] = type(value)
            same = f"args[{position}].__class__ is k_s{position}"
            same += f" and args[{position}] == s{position}"
        lines.append(f"if not ({same}): return MISS")
    leaves: list[str] = []
    pending = ["kwargs", *(f"args[{position}]" for position in reversed(call.traced))]
    for number, token in enumerate(call.structure.tokens[2:]):  # after the pair and the list
        source = pending.pop()
        if token[0] == "leaf":
            lines += _leaf_test(len(leaves), source, types[len(leaves)])
            leaves.append(f"a{len(leaves)}")
        elif token[0] == "none":
            lines.append(f"if {source} is not None: return MISS")
        else:
            pending += reversed(_container_test(number, source, token, lines, scope))
    body = "\n        ".join([*lines, f"return ({''.join(f'{leaf}, ' for leaf in leaves)})"])
    text = f"def match(args, kwargs):\n    try:\n        {body}\n"
    text += "    except (KeyError, AttributeError):\n        return MISS\n"
    exec(compile(text, "<difflab.jit>", "exec", dont_inherit=True), scope)  # noqa: S102 - holds only names made here
    match: Callable[[Any, Any], Any] = scope["match"]
    return match


def _leaf_test(number: int, source: str, kind: LeafType) -> list[str]:
    name = f"a{number}"
    if kind.shape:
        dtype = "float32" if kind.dtype == "float32" else "float64"
        test = f"{name}.__class__ is ndarray and {name}.dtype is {dtype}"
        return [
            f"{name} = {source}",
            f"if not ({test} and {name}.shape == {kind.shape}): return MISS",
        ]
    if kind.dtype == "float64":
        test, number_of = f"{name}.__class__ is float", f"{name}.__class__ is scalar"
    else:
        test, number_of = "False", f"{name}.__class__ is {_PYTHON.get(kind.dtype, 'MISS')}"
    return [
        f"{name} = {source}",
        f"if not {test}:",
        f"    if not {number_of}: return MISS",
        f"    {name} = float({name})",
    ]


_PYTHON = {"int64": "int", "bool": "bool"}


def _container_test(
    number: int, source: str, token: tuple[Any, ...], lines: list[str], scope: dict[str, Any]
) -> list[str]:
    """Append the test of a container, and return the expressions of its children."""
    name, kind = f"t{number}", f"k{number}"
    scope[kind] = token[0]
    keys = token_keys(token)
    lines += [f"{name} = {source}", f"if {name}.__class__ is not {kind}: return MISS"]
    if token[0] is not dict and not isinstance(token[1], int):
        return [f"{name}.{key}" for key in keys]
    lines.append(f"if len({name}) != {len(keys)}: return MISS")
    if token[0] is not dict:
        return [f"{name}[{key}]" for key in keys]
    for position, key in enumerate(keys):
        scope[f"{kind}_{position}"] = key
    return [f"{name}[{kind}_{position}]" for position in range(len(keys))]

r"""A tree of arguments, and a tree of results, as vectors of real numbers.

Complex numbers are their real and imaginary parts. The gradient of a real function of complex
arguments is that of PyTorch and NumPy's users,
:math:`\partial f/\partial\,\mathrm{Re}\,z + i\,\partial f/\partial\,\mathrm{Im}\,z
= 2\,\partial f/\partial\bar z`, for their arrays, and its conjugate,
:math:`2\,\partial f/\partial z`, for JAX's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.conversions import host_numbers, without_parts
from difflab.errors import DomainError, InputError, PointError
from difflab.graph.pytree import Structure, flatten, leaf_paths, unflatten
from difflab.testing.checker.leaves import CHUNK, Array, Leaf, library_of, of_leaf
from difflab.testing.checker.message import GradientMismatch

__tracebackhide__ = True  # pytest shows the message and the test, no frame of this module


_LISTED = 5  # parts of a structure that a message names
_FIRST = re.compile(r'^\["(\w+)"\]')
_QUOTED = re.compile(r"\['([^'\"\\]*)'\]")


def double_quoted(path: str) -> str:
    """Return a path of a leaf as messages and stored files show it.

    Examples
    --------
    >>> double_quoted("['layer2']['b'][0]")
    '["layer2"]["b"][0]'
    """
    return _QUOTED.sub(r'["\1"]', path)


def by_path(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the leaves of trees by their Python expressions.

    Examples
    --------
    >>> by_path({"a": 1.0, "p": {"w": [2.0, 3.0]}})
    {'a': 1.0, 'p["w"][0]': 2.0, 'p["w"][1]': 3.0}
    """
    flat = {}
    for name, value in values.items():
        leaves, structure = flatten(value)
        for path, leaf in zip(leaf_paths(structure), leaves, strict=True):
            flat[name + double_quoted(path)] = leaf
    return flat


class _Vector:
    """The floating-point leaves of a tree, in order."""

    def __init__(self, tree: Any, root: str) -> None:
        self.root = root
        values, self.structure = flatten(tree)
        self.values = [
            without_parts(value, f"a leaf of {root or 'the arguments'}") for value in values
        ]
        leaves = [of_leaf(value) for value in self.values]
        self.positions = [i for i, leaf in enumerate(leaves) if leaf is not None and leaf.size]
        self.leaves: list[Leaf] = [leaf for leaf in leaves if leaf is not None and leaf.size]
        sizes = [leaf.size for leaf in self.leaves]
        self.starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.intp)]).astype(np.intp)
        self.n = int(self.starts[-1])

    @property
    def eps(self) -> float:
        """The spacing at 1 of the coarsest dtype."""
        return max(leaf.eps for leaf in self.leaves)

    @cached_property
    def libraries(self) -> set[str]:
        """The packages of the arrays."""
        return {library_of(leaf.original) for leaf in self.leaves}

    def numbers(self) -> Array:
        """Return all real elements as float64; do not write to them."""
        parts = [leaf.numbers() for leaf in self.leaves]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def chosen(self, tree: Any) -> list[Any]:
        """Return the floating-point leaves of a tree of the same structure."""
        values = flatten(tree)[0]
        return [values[position] for position in self.positions]

    def split(self, elements: Array, *, conjugate: bool = False) -> list[Any]:
        """Return the leaves with other elements ``(n,)``, rounded to the dtypes."""
        built = []
        for leaf, start in zip(self.leaves, self.starts.tolist(), strict=False):
            part = elements[start : start + leaf.size].copy()
            if leaf.complex and conjugate:
                part[1::2] *= -1.0
            flat = leaf.copy()
            leaf.write(flat, 0, leaf.size, part)
            built.append(leaf.value(flat))
        return built

    def rebuilt(self, built: Sequence[Any]) -> Any:
        """Return the tree with other floating-point leaves."""
        values = list(self.values)
        for position, value in zip(self.positions, built, strict=True):
            values[position] = value
        return unflatten(self.structure, values)

    def path(self, position: int) -> str:
        """Return the Python expression of a leaf of the tree."""
        return self.named(leaf_paths(self.structure)[position])

    def named(self, path: str) -> str:
        """Return the Python expression of a path of leaves."""
        expression = double_quoted(path)
        return self.root + expression if self.root else _FIRST.sub(r"\1", expression)

    def leaf_at(self, index: int) -> tuple[int, int]:
        """Return which leaf holds a number, and its index there."""
        which = int(np.searchsorted(self.starts, index, side="right")) - 1
        return which, index - int(self.starts[which])

    def magnitude(self, index: int) -> float:
        """Return the magnitude of one element; 1 for zero."""
        which, inside = self.leaf_at(index)
        leaf = self.leaves[which]
        return abs(float(leaf.read(leaf.flat(), inside, inside + 1)[0])) or 1.0

    def name(self, index: int) -> str:
        """Return the Python expression of one of the ``n`` elements.

        Examples
        --------
        >>> point = Point({"dense1": {"w": np.zeros((4, 8))}}, "params")
        >>> point.name(31)
        'params["dense1"]["w"][3, 7]'
        """
        which, inside = self.leaf_at(index)
        leaf = self.leaves[which]
        element, part = divmod(inside, 2) if leaf.complex else (inside, 0)
        suffix = (".real", ".imag")[part] if leaf.complex else ""
        indices = ", ".join(str(int(k)) for k in np.unravel_index(element, leaf.shape))
        subscript = f"[{indices}]" if leaf.shape else ""
        return self.path(self.positions[which]) + subscript + suffix


class Point(_Vector):
    """A tree of arguments, whose ``n`` real elements a function is differentiated by.

    Parameters
    ----------
    tree : Any
        Dicts, lists, tuples, dataclasses and named tuples around arrays and scalars. Integers,
        strings and other leaves are settings.
    root : str
        The name of the tree in messages; if it is empty, the keys of a dict are names.
    """

    def __init__(self, tree: Any, root: str) -> None:
        super().__init__(tree, root)
        if not self.leaves:
            raise PointError(
                f"{root} holds no array or number of a floating-point or complex dtype: there is"
                " no input to differentiate with respect to",
                hint="pass a number such as 1.0, or an array of them that is not empty",
            )
        for leaf in self.leaves:
            if not all(
                np.isfinite(leaf.read(leaf.flat(), a, a + CHUNK)).all()
                for a in range(0, leaf.size, CHUNK)
            ):
                raise PointError("the point has an element that is not finite")

    def element(self, outputs: Outputs, row: int, column: int) -> str:
        """Return the name of an element of the Jacobian: ``x[1]``, or ``dy[0]/dx[1]``."""
        name = self.name(column)
        return name if self.of_number(outputs) else f"d{outputs.name(row)}/d{name}"

    def of_number(self, outputs: Outputs) -> bool:
        """Whether the derivative of a result is named by its argument alone."""
        return outputs.m == 1

    def moved(self, elements: Array) -> Point:
        """Return the point of other elements ``(n,)``."""
        return type(self)(self.at(elements), self.root)

    def outputs(self, result: Any) -> Outputs:
        """Return the result of the function."""
        return Outputs(result)

    def infinite(self, outputs: Outputs) -> DomainError:
        """Return the error for a result that is not finite."""
        shown = repr(outputs.values[0]) if len(outputs.values) == 1 else "a tree"
        return DomainError(f"f is not finite at the given point: it returns {shown}")

    def copy(self) -> Any:
        """Return the tree with copies of its arrays."""
        return self.rebuilt(self.copies())

    def copies(self) -> list[Any]:
        """Return copies of its arrays."""
        return [leaf.value(leaf.copy()) for leaf in self.leaves]

    def at(self, elements: Array) -> Any:
        """Return the tree of other elements ``(n,)``, rounded to the dtypes."""
        return self.rebuilt(self.split(elements))

    def displaced(
        self, along: Array, t: float, weights: Array, start: int = 0, stop: int | None = None
    ) -> tuple[Any, Array]:
        """Return the tree displaced by `t` times `along`, and sums of the displacements.

        Only the elements from `start` to `stop` are displaced, as in `Leaf.displaced`.
        """
        stop = self.n if stop is None else stop
        starts, total = self.starts.tolist(), np.zeros(len(weights))
        built = []
        for leaf, low, high in zip(self.leaves, starts[:-1], starts[1:], strict=True):
            first, last = max(start, low), min(stop, high)
            if first >= last:
                built.append(leaf.original)
                continue
            rows = weights[:, low:high]
            value, part = leaf.displaced(along[low:high], t, first - low, last - low, rows)
            built.append(value)
            total += part
        return self.rebuilt(built), total

    def changed(self, tree: Any) -> str | None:
        """Return the path of the first array that a call changed in its argument `tree`."""
        values = flatten(tree)[0]
        if len(values) != len(self.values):
            return self.root
        for position, leaf in zip(self.positions, self.leaves, strict=True):
            if of_leaf(values[position]) is None or leaf.changed(values[position]):
                return self.path(position)
        return None

    def rows(self, gradient: Any, outputs: Outputs) -> Array:
        """Return a gradient under test as the real Jacobian ``(m, n)``.

        Raises
        ------
        GradientMismatch
            Its structure or a shape is not that of the arguments.
        """
        values = self._matched(gradient)
        blocks = []
        for position, leaf in zip(self.positions, self.leaves, strict=True):
            blocks.append(_block(values[position], leaf, outputs, self.path(position)))
        return blocks[0] if len(blocks) == 1 else np.hstack(blocks)

    def _matched(self, gradient: Any) -> list[Any]:
        """Return the leaves of a gradient of the same structure; None where it has none."""
        values, structure = flatten(gradient)
        tokens = structure.tokens
        same = len(tokens) == len(self.structure.tokens) and all(
            theirs == ours or (theirs == ("none",) and ours == ("leaf",))
            for theirs, ours in zip(tokens, self.structure.tokens, strict=True)
        )
        if not same:
            raise GradientMismatch(self._difference(structure))
        remaining = iter(values)
        both = zip(tokens, self.structure.tokens, strict=True)
        leaves = [
            next(remaining) if theirs == ("leaf",) else None
            for theirs, ours in both
            if ours == ("leaf",)
        ]
        for position, leaf in zip(self.positions, self.leaves, strict=True):
            if leaves[position] is None:
                zeros = f"zeros of the shape {leaf.shape}" if leaf.shape else "0.0"
                raise GradientMismatch(
                    f"the gradient with respect to {self.path(position)} is None: return {zeros}"
                    " if f does not depend on it"
                )
        return leaves

    def _difference(self, structure: Structure) -> str:
        """Return which parts a gradient of another structure lacks, or has too many."""
        ours = [self.path(k) for k in range(len(self.values))]
        theirs = [self.named(path) for path in leaf_paths(structure)]
        none = structure.tokens.count(("none",))
        missing = [path for path in ours if path not in theirs]
        extra = [path for path in theirs if path not in ours]
        if (
            missing
            and len(missing) < len(ours)
            and not none
            and all(_absent(path, theirs) for path in missing)
        ):
            verb = "is" if len(missing) == 1 else "are"
            return f"{_listed(missing)} {verb} missing in the gradient"
        if extra and not missing:
            verb = "is no part" if len(extra) == 1 else "are no parts"
            return f"{_listed(extra)} in the gradient {verb} of {self.root or 'the arguments'}"
        name = self.root or "the arguments"
        return f"the gradient has the structure {structure}; that of {name} is {self.structure}"


def _absent(path: str, theirs: Sequence[str]) -> bool:
    """Whether a gradient lacks a leaf, rather than having something else in its stead."""
    return not any(
        other.startswith((f"{path}[", f"{path}.")) or path.startswith((f"{other}[", f"{other}."))
        for other in theirs
    )


def _listed(paths: Sequence[str]) -> str:
    more = [f"{len(paths) - _LISTED} more"] if len(paths) > _LISTED else []
    shown = [*paths[:_LISTED], *more]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


class Outputs(_Vector):
    """The result of a function: its ``m`` real elements."""

    def __init__(self, tree: Any) -> None:
        super().__init__(tree, "y")
        self.m = self.n
        if not self.leaves:
            raise PointError("f does not return real or complex floating-point numbers")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the only array."""
        if len(self.leaves) > 1:
            raise InputError("a gradient is checked for functions that return one array")
        return self.leaves[0].shape

    @property
    def complex(self) -> bool:
        """Whether the only array is complex."""
        return self.leaves[0].complex


def derivative_leaf(value: Any, what: str) -> Leaf:
    """Return the leaf of a derivative under test.

    Raises
    ------
    GradientMismatch
        It is not numeric.
    """
    value = without_parts(value, what, GradientMismatch)
    leaf = of_leaf(value) or of_leaf(host_numbers(value, what, GradientMismatch) + 0.0)
    assert leaf is not None
    return leaf


def real_numbers(leaf: Leaf, what: str) -> Array:
    """Return the elements of a real derivative.

    Raises
    ------
    GradientMismatch
        It has imaginary parts.
    """
    elements = leaf.numbers()
    if not leaf.complex:
        return elements
    if elements[1::2].any():
        largest = float(np.abs(elements[1::2]).max())
        raise GradientMismatch(
            f"{what} has imaginary parts, up to {largest:.6g}, and the function is real"
        )
    return elements[::2]


def _block(value: Any, leaf: Leaf, outputs: Outputs, path: str) -> Array:
    """Return the part of a Jacobian that belongs to one leaf, ``(m, leaf.size)``."""
    count = outputs.m // (2 if outputs.complex else 1)
    what = f"the gradient with respect to {path}"
    gradient = derivative_leaf(value, what)
    shape = outputs.shape + leaf.shape
    if gradient.shape not in (shape, leaf.shape if count == 1 else shape):
        raise GradientMismatch(f"{what} has the shape {gradient.shape}; it must be {shape}")
    if not leaf.complex and not outputs.complex:
        return real_numbers(gradient, what).reshape(count, leaf.size)
    elements = gradient.numbers()
    both = elements.view(np.complex128) if gradient.complex else elements.astype(np.complex128)
    return _real_rows(both.reshape(count, -1), leaf, outputs)


def _real_rows(rows: NDArray[np.complex128], leaf: Leaf, outputs: Outputs) -> Array:
    """Return complex derivatives as those of real and imaginary parts, ``(m, leaf.size)``."""
    count = len(rows)
    if not outputs.complex:
        towards = rows.conj() if library_of(leaf.original) == "jax" else rows
        return towards.view(np.float64).reshape(count, leaf.size)
    if not leaf.complex:
        return np.stack([rows.real, rows.imag], axis=1).reshape(2 * count, leaf.size)
    # A holomorphic function: dy = g dz.
    real = np.stack([rows.real, -rows.imag], axis=-1)
    imaginary = np.stack([rows.imag, rows.real], axis=-1)
    return np.stack([real, imaginary], axis=1).reshape(2 * count, leaf.size)

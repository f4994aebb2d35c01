"""Factorisations in the language: one array that holds the parts below each other.

``eigh(A)`` has the eigenvalues in its first row and the eigenvectors below, ``svd(A)`` U, the
singular values and V, ``qr(A)`` Q and R, ``slogdet(A)`` the sign and the logarithm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from difflab.errors import ShapeError
from difflab.graph.ir import Shape
from difflab.graph.node import Node
from difflab.primitives import eigenvalues, eigh, pinv, qr, singular_values, slogdet, svd

__all__ = ["FACTORED"]

FACTORS_OF = {eigenvalues: eigh, singular_values: svd}
"""The factorisation that a row of a matrix and its factors takes."""


def _checked(nodes: Sequence[Node], row: Any) -> Node:
    shape = nodes[0].shape
    if len(shape) < 2 or 0 in shape:
        raise ShapeError(f"{row.name} takes matrices that are not empty, not {list(shape)}")
    if row in (eigh, eigenvalues, slogdet) and shape[-1] != shape[-2]:
        raise ShapeError(f"{row.name} takes square matrices, not {list(shape)}")
    if row is qr and shape[-2] < shape[-1]:
        raise ShapeError(f"qr takes matrices with as many rows as columns, not {list(shape)}")
    if row in FACTORS_OF:
        factors: Any = FACTORS_OF[row]
        _check_factors(row, nodes[1].shape, factors.shape([shape]), factors.name)
    found: Node = row(*nodes)
    return found


def _check_factors(row: Any, shape: Shape, wanted: Shape, name: str) -> None:
    if shape != wanted:
        raise ShapeError(
            f"{row.name} takes a matrix A and {name}(A), of shape {list(wanted)},"
            f" not {list(shape)}",
            hint=f"write {row.name}(A, {name}(A))",
        )


def _call(row: Any) -> Callable[..., Node]:
    return lambda *nodes: _checked(nodes, row)


FACTORED: Mapping[str, tuple[Callable[..., Node], int]] = {
    row.name: (_call(row), 2 if row in FACTORS_OF else 1)
    for row in (eigenvalues, eigh, pinv, qr, singular_values, slogdet, svd)
}
"""The rows of factorisations by name, and how many arguments they take."""

"""Contraction of the products of a complete array program."""

from __future__ import annotations

import numpy as np

from difflab.execute.lower.ops import FEW, NumpyProgram, Op, OpForm


def _uses(program: NumpyProgram) -> dict[int, int]:
    uses: dict[int, int] = {}
    for numbers in (*(op.reads for op in program.ops), program.outputs):
        for number in numbers:
            uses[number] = uses.get(number, 0) + 1
    return uses


def contract(program: NumpyProgram) -> None:
    """Replace short sums of products by scalar products, which need no array of products."""
    uses = _uses(program)
    for op in list(program.ops):
        products = program.made.get(op.reads[0]) if op.form == OpForm.REDUCE else None
        if products is None or uses[products.number] > 1 or not _sums(op, products):
            continue
        if all(program.shape(number) == products.shape for number in products.reads):
            form = OpForm.INNER if op.shape == () else OpForm.ALONG
            sums = op._replace(form=form, detail=None, reads=products.reads)
            program.made[op.number] = sums


def _sums(op: Op, products: Op) -> bool:
    """Whether `op` sums few products, all of them or along the last axis."""
    ufunc, axes, keepdims = op.detail
    if ufunc is not np.add or keepdims or products.detail is not np.multiply:
        return False
    last = len(products.shape) - 1
    terms = products.size if axes is None else products.shape[last]
    return axes in (None, (last,)) and terms <= FEW

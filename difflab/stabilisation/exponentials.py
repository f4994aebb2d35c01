"""Values in the form s·eᴸ, for stable logarithms and quotients of exponentials.

While the graph is copied, s and L are recorded for every node that is an exponential or that
results from exponentials by products, quotients, powers, sums and data movement. Its ``log`` is
then ``log(s) + L``, which has no exponential that could overflow or underflow; and the quotient of
an exponential and a sum that contains it is a sigmoid or a softmax.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from difflab.core.primitive import Primitive
from difflab.graph.algebra import signs, unspread
from difflab.graph.builder import Builder
from difflab.graph.rewrite import Args
from difflab.primitives import (
    add,
    broadcast,
    concatenate,
    diagonal,
    divide,
    exp,
    index,
    log,
    log1mexp,
    log_softmax,
    logaddexp,
    logsumexp,
    multiply,
    negative,
    pack,
    power,
    prod,
    reshape,
    sigmoid,
    softmax,
    softplus,
    sqrt,
    subtract,
    sum_,
    take,
    transpose,
)
from difflab.stabilisation.matching import number
from difflab.stabilisation.sums import PACKED, GraphSums

MOVES = frozenset({broadcast, concatenate, diagonal, index, pack, reshape, take, transpose})


class ExponentialForm(NamedTuple):
    """A value s·eᴸ; the fields are nodes, and a `scale` of None means 1."""

    scale: int | None
    log: int


class Exponentials:
    """The forms s·eᴸ of the nodes of a graph under construction.

    Parameters
    ----------
    builder : Builder
        The graph; unused nodes are removed when it is frozen.
    sums : GraphSums
        The sums of that graph.
    """

    def __init__(self, builder: Builder, sums: GraphSums) -> None:
        self.builder = builder
        self.sums = sums
        self.forms: dict[int, ExponentialForm | None] = {}
        self.added: dict[int, list[int]] = {}

    def note(self, node: int) -> None:
        """Record the form of a node, if it has one; operands must be recorded first."""
        row = self.builder.primitive(node)
        # A sum whose only use is another sum is part of that sum.
        alone = self.sums.uses[node] == 1 and signs(self.builder, node) == (1, 1)
        if row is not None and not alone and node not in self.forms:
            self.forms[node] = self._form(row, node)

    def form(self, node: int) -> ExponentialForm | None:
        """Return the form of a node, sums included; None if it has none."""
        if node not in self.forms and signs(self.builder, node) == (1, 1):
            self.forms[node] = self._form(add, node)
        return self.forms.get(node)

    # --- forms --------------------------------------------------------------------------------

    def _form(self, row: Primitive, node: int) -> ExponentialForm | None:
        find = _FORMS.get(row)
        return None if find is None else find(self, node, row, self.builder.arguments(node))

    def _exp(self, node: int, row: Primitive, args: Args) -> ExponentialForm:
        return ExponentialForm(None, args[0])

    def _sigmoid(self, node: int, row: Primitive, args: Args) -> ExponentialForm:
        return ExponentialForm(None, self._negative(self._emit(softplus, self._negative(args[0]))))

    def _softmax(self, node: int, row: Primitive, args: Args) -> ExponentialForm:
        return ExponentialForm(None, self._again(log_softmax, node, args))

    def _product(
        self, node: int, row: Primitive, args: Args, of_logs: Primitive
    ) -> ExponentialForm | None:
        """Return the form of a product or quotient; `of_logs` adds or subtracts the logarithms."""
        left, right = map(self.form, args)
        if left is None and right is None:
            return None
        scales = [
            form.scale if form is not None else arg
            for form, arg in zip((left, right), args, strict=True)
        ]
        if left is None or right is None:
            form = left or right
            assert form is not None
            degree = row.degrees[left is None]
            exponent = form.log if degree > 0 else self._negative(form.log)
        else:
            exponent = self._emit(of_logs, left.log, right.log)
        return ExponentialForm(self._combined(row, scales[0], scales[1]), exponent)

    def _combined(self, row: Primitive, left: int | None, right: int | None) -> int | None:
        if right is None:
            return left
        if left is None and row.degrees == (1, 1):
            return right
        return self._emit(row, self.builder.constant(1) if left is None else left, right)

    def _power(self, node: int, row: Primitive, args: Args) -> ExponentialForm | None:
        """Return the form of a power, or of a square root, which has no second argument."""
        form = self.form(args[0])
        if form is None or form.scale is not None:
            return None
        exponent = args[1] if len(args) == 2 else self.builder.constant(0.5)
        return ExponentialForm(None, self._emit(multiply, exponent, form.log))

    def _moved(self, node: int, row: Primitive, args: Args) -> ExponentialForm | None:
        logs = [self.log_of(arg) for arg in args]
        known = [entry for entry in logs if entry is not None]
        if len(known) < len(args) or not any(self.form(arg) for arg in args):
            return None
        return ExponentialForm(None, self._again(row, node, tuple(known)))

    def _sum(self, node: int, row: Primitive, args: Args) -> ExponentialForm | None:
        """Return the form of a sum of exponentials and positive constants."""
        terms = self.sums.terms(node)
        logs = []
        for term in terms:
            exponent = self.log_of(term)
            if exponent is None:
                return None
            logs.append(exponent)
        if not any(self.forms.get(term) for term in terms):
            return None
        self.added[node] = logs
        return ExponentialForm(None, self._log_sum(logs))

    def _log_sum(self, logs: list[int]) -> int:
        if len(logs) > 2:
            packed = self.sums.packed(logs)
            if packed is not None:
                return self.builder.emit(logsumexp, (packed,), PACKED)
        result = logs[0]
        for other in logs[1:]:
            ones = [part for part in (result, other) if number(self.builder, part) != 0]
            result = (
                self._emit(softplus, ones[0])
                if len(ones) == 1
                else self._emit(logaddexp, result, other)
            )
        return result

    def _reduction(
        self, node: int, row: Primitive, args: Args, of_logs: Primitive
    ) -> ExponentialForm | None:
        """Return the form of a sum or product along axes; `of_logs` reduces the logarithms."""
        exponent = self.log_of(args[0])
        if self.form(args[0]) is None or exponent is None:
            return None
        return ExponentialForm(None, self._again(of_logs, node, (exponent,)))

    def log_of(self, node: int) -> int | None:
        """Return the log of an exponential or a positive constant; None for any other node."""
        builder = self.builder
        value = number(builder, node)
        if value is not None:
            if not value > 0:
                return None
            return (
                builder.constant(0) if value == 1 else builder.emit(log, (unspread(builder, node),))
            )
        form = self.form(node)
        if form is None or form.scale is None:
            return form.log if form else None
        if number(builder, form.scale) is None:
            return None
        scale = self.log_of(form.scale)
        return None if scale is None else self._emit(add, scale, form.log)

    # --- rewrites -----------------------------------------------------------------------------

    def logarithm(self, node: int) -> tuple[int | None, int] | None:
        """Return (s, L) with ``log(node) = log(s) + L``; None if there is no such form."""
        builder = self.builder
        form = self.form(node)
        if form is not None:
            return form
        if signs(builder, node) == (1, -1):
            left, right = builder.arguments(node)
            if self.form(left) is not None and self.form(right) is not None:
                larger, smaller = self.log_of(left), self.log_of(right)
                if larger is not None and smaller is not None:
                    below = self._emit(log1mexp, self._emit(subtract, smaller, larger))
                    return None, self._emit(add, larger, below)
        return None

    def log1p(self, node: int) -> int | None:
        """Return a stable ``log(1 + node)`` if `node` is an exponential or the negative of one."""
        builder = self.builder
        minus = signs(builder, node) == (-1,)
        inner = builder.arguments(node)[0] if minus else node
        if self.form(inner) is None:
            return None
        exponent = self.log_of(inner)
        return None if exponent is None else self._emit(log1mexp if minus else softplus, exponent)

    def ratio(self, node: int) -> int | None:
        """Return a quotient by a sum of exponentials as a sigmoid or a softmax."""
        above, below = self.builder.arguments(node)
        sum_below = unspread(self.builder, below)
        self.form(sum_below)
        logs = self.added.get(sum_below)
        top = self.form(above)
        if logs is not None:
            exponent = top.log if top is not None else self.log_of(above)
            if exponent in logs:
                share = self._share(logs, logs.index(exponent))
                scale = top.scale if top is not None else None
            elif len(logs) == 2 and 0 in (zero := [number(self.builder, part) for part in logs]):
                share, scale = self._share(logs, zero.index(0)), above
            else:
                return None
            return share if scale is None or share is None else self._emit(multiply, scale, share)
        return self._quotient(above, below)

    def _share(self, logs: list[int], position: int) -> int | None:
        """Return e^logs[position] divided by the sum of all e^logs."""
        if len(logs) == 2:
            here, other = logs[position], logs[1 - position]
            if number(self.builder, here) == 0:
                return self._emit(sigmoid, self._negative(other))
            return self._emit(sigmoid, self._emit(subtract, here, other))
        packed = self.sums.packed(logs)
        if packed is None:
            return None
        shares = self.builder.emit(softmax, (packed,), PACKED)
        return self.builder.emit(index, (shares,), (("key", (position,)), ("rank", 1)))

    def _quotient(self, above: int, below: int) -> int | None:
        """Return eˣ/Σeˣ along axes as a softmax, and eᵃ/eᵇ as one exponential."""
        builder = self.builder
        top, bottom = self.form(above), self.form(below)
        if top is None or bottom is None or bottom.scale is not None:
            return None
        total = self._reduced(bottom.log)
        if total is not None and builder.arguments(total) == (top.log,):
            shares = self._again(softmax, total, (top.log,))
            return shares if top.scale is None else self._emit(multiply, top.scale, shares)
        if all(builder.primitive(unspread(builder, part)) is exp for part in (above, below)):
            return self._emit(exp, self._emit(subtract, top.log, bottom.log))
        return None

    def _reduced(self, node: int) -> int | None:
        """Return the logsumexp that `node` broadcasts along its reduced axes, or None."""
        builder = self.builder
        source = beneath = unspread(builder, node)
        while builder.primitive(source) is reshape:
            (source,) = builder.arguments(source)
        if builder.primitive(source) is not logsumexp:
            return None
        (exponents,) = builder.arguments(source)
        whole, axes = builder.shape(exponents), builder.params(source)["axes"]
        rank, shape = len(whole), builder.shape(beneath)
        kept = tuple(1 if axis - rank in axes else size for axis, size in enumerate(whole))
        return source if (1,) * (rank - len(shape)) + shape == kept else None

    # --- emission -----------------------------------------------------------------------------

    def _emit(self, row: Primitive, *args: int) -> int:
        """Append an operation with exact simplifications, so that no -(-x) remains."""
        return self.builder.emit_simplified(row, args)

    def _negative(self, node: int) -> int:
        """Append -node; the minus of a first factor is removed instead."""
        row = self.builder.primitive(node)
        if row is not None and row.degrees:
            first, second = self.builder.arguments(node)
            if signs(self.builder, first) == (-1,):
                return self._emit(row, self.builder.arguments(first)[0], second)
        return self._emit(negative, node)

    def _again(self, row: Primitive, node: int, args: tuple[int, ...]) -> int:
        """Append `row` with the parameters of `node`."""
        return self.builder.emit(row, args, tuple(sorted(self.builder.params(node).items())))


_FORMS: dict[Primitive, Callable[..., ExponentialForm | None]] = {
    exp: Exponentials._exp,
    sigmoid: Exponentials._sigmoid,
    softmax: Exponentials._softmax,
    add: Exponentials._sum,
    multiply: partial(Exponentials._product, of_logs=add),
    divide: partial(Exponentials._product, of_logs=subtract),
    sum_: partial(Exponentials._reduction, of_logs=logsumexp),
    prod: partial(Exponentials._reduction, of_logs=sum_),
    power: Exponentials._power,
    sqrt: Exponentials._power,
    **dict.fromkeys(MOVES, Exponentials._moved),
}
"""How the form of an operation follows from those of its operands."""

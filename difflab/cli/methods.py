"""``difflab methods``: the installed methods of differentiation, and the orders of each."""

from __future__ import annotations

from difflab.cli.output import emit, screen


def methods() -> int:
    """List the methods, their orders, and why any is missing."""
    from difflab.core.quantities import ABSENT
    from difflab.core.table import Cell, Column, Table
    from difflab.methods.registry import describe
    from difflab.report.style import clean
    from difflab.report.terminal import draw

    columns = (
        *(Column("method", wrap=True, widest=18), Column("family"), Column("orders")),
        Column("description, or why it is missing", wrap=True),
    )
    rows = [
        (
            Cell(clean(method.name), str(method.family)),
            str(method.family),
            ", ".join(map(str, method.orders)) or ABSENT,
            Cell(clean(method.missing or method.summary), "absent" * bool(method.missing)),
        )
        for method in describe()
    ]
    emit(draw([Table(columns, rows)], **screen()))
    return 0

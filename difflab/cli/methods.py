"""``difflab methods``: the installed methods of differentiation, and the orders of each."""

from __future__ import annotations

from difflab.cli.output import emit, screen

__all__ = ["methods"]


def methods() -> int:
    """List the methods, their orders, and why any is missing."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from difflab.methods.registry import describe
    from difflab.report.style import ABSENT, FAMILIES, PLAIN, clean
    from difflab.report.terminal import draw

    listing = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    listing.add_column("method", overflow="fold", max_width=18)
    listing.add_column("family", no_wrap=True)
    listing.add_column("orders", no_wrap=True)
    listing.add_column("description, or why it is missing", overflow="fold")
    for method in describe():
        listing.add_row(
            Text(clean(method.name), style=FAMILIES.get(method.family, PLAIN).terminal),
            str(method.family),
            ", ".join(map(str, method.orders)) or ABSENT,
            Text(clean(method.missing or method.summary), style="yellow" * bool(method.missing)),
        )
    emit(draw([listing], **screen()))
    return 0

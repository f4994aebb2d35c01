"""Names of outputs and fresh names, the same for the parser and the printers. Imports nothing."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

__all__ = ["Names", "output_names"]


def output_names(variables: Sequence[str | None]) -> tuple[str, ...]:
    """Return a name for each output: its variable's, or ``y``, or ``y1``, ``y2``, ….

    Parameters
    ----------
    variables : sequence of str or None
        For each output the variable that it is, None where it is an expression.

    Examples
    --------
    >>> output_names([None]), output_names(["a", None]), output_names(["y2", None])
    (('y',), ('a', 'y2'), ('y2', 'y2_'))
    """
    counts: dict[str | None, int] = {}
    for name in variables:
        counts[name] = counts.get(name, 0) + 1
    kept = [name if name is not None and counts[name] == 1 else None for name in variables]
    names = Names(name for name in kept if name is not None)
    return tuple(
        name or names.fresh("y" if len(kept) == 1 else f"y{position}")
        for position, name in enumerate(kept, 1)
    )


class Names:
    """Names that are taken, and fresh ones beside them.

    Examples
    --------
    >>> names = Names(["t1"])
    >>> names.fresh("t1"), names.numbered("t"), names.numbered("t")
    ('t1_', 't2', 't3')
    """

    def __init__(self, taken: Iterable[str] = (), reserved: Container[str] = ()) -> None:
        self._taken = set(taken)
        self._reserved = reserved
        self._counts: dict[str, int] = {}

    def fresh(self, name: str) -> str:
        """Take `name`, with underscores added until it is free."""
        while name in self._taken or name in self._reserved:
            name += "_"
        self._taken.add(name)
        return name

    def numbered(self, stem: str) -> str:
        """Take `stem` with the next number that is free."""
        while True:
            count = self._counts[stem] = self._counts.get(stem, 0) + 1
            name = f"{stem}{count}"
            if name not in self._taken and name not in self._reserved:
                self._taken.add(name)
                return name

"""``difflab fuzz``: random programs, every method and package, and what each gets wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from difflab.cli.options import one_of, parse_names
from difflab.cli.output import emit, say

if TYPE_CHECKING:
    from difflab.methods.protocol import Method
    from difflab.testing.fuzz.campaign import Campaign

__all__ = ["fuzz"]


def fuzz(
    seconds: Annotated[float, typer.Option(min=0.1)] = 60.0,
    peers: str = "none",
    output: Path = Path("reports/fuzz"),
) -> int:
    """Differentiate random programs by every method.

    A method that disagrees with the referee where another one agrees is a finding: its
    program is shrunk and written as a pytest file. The same command goes on where the
    last run stopped, also after Ctrl-C. Needs Hypothesis.

    Parameters
    ----------
    seconds
        How long to run.
    peers : jax,…|all|none
        The packages to test as well.
    output : DIR
        The folder of the findings.

    Examples
    --------
    difflab fuzz --seconds 60
    difflab fuzz --seconds 3600 --peers all -o fuzz
    """
    from difflab.core.optional import require

    require("hypothesis")
    from difflab.testing.fuzz.campaign import Campaign
    from difflab.testing.fuzz.panel import Panel

    campaign = Campaign.resumed(output, Panel(_methods(peers)))
    try:
        new = campaign.run(seconds, say)
    except KeyboardInterrupt:
        emit(_counts(campaign))
        raise
    emit(_counts(campaign))
    return int(new > 0)


def _methods(peers: str) -> Mapping[str, Method]:
    """Return difflab's own methods and the chosen peers, all in this process."""
    from difflab.methods import registry

    known = registry.peers()
    names = {"none": [], "all": [n for n, peer in known.items() if not peer.missing()]}.get(peers)
    if names is None:
        names = parse_names(peers) or []
    found = {name: registry.find(one_of(name, list(known), "peer")) for name in names}
    return {**registry.own(), **found}


def _counts(campaign: Campaign) -> str:
    """Return the table of verdicts, and the findings."""
    from difflab.core.table import Column, Table

    verdicts = ("agree", "convention", "inconclusive", "refused", "disagree", "crash")
    counts = campaign.panel.counts
    rows = [
        (name, *(counts[name, verdict] or "" for verdict in verdicts))
        for name in campaign.panel.methods
    ]
    columns = [Column("method"), *(Column(verdict, right=True) for verdict in verdicts)]
    lines = [
        Table(columns, rows).text(),
        f"{campaign.programs:,} programs judged, {campaign.skipped:,} without a derivative, "
        f"{campaign.batches:,} seeds; {len(campaign.records)} findings, repeated "
        f"{campaign.repeats:,} times",
        *(str(campaign.folder / record.file) for record in campaign.records),
    ]
    return "\n".join(lines) + "\n"

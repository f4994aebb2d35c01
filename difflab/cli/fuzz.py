"""``difflab fuzz``: random programs, every method and package, and what each gets wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from difflab.cli.options import one_of, parse_names
from difflab.cli.output import emit, say

if TYPE_CHECKING:
    from difflab.methods.protocol import Method
    from difflab.testing.fuzz.campaign import Campaign
    from difflab.testing.fuzz.compositions.panel import CompositionPanel
    from difflab.testing.fuzz.panel import Panel


def fuzz(
    seconds: Annotated[float, typer.Option(min=0.1)] = 60.0,
    peers: str = "none",
    compositions: bool = False,
    output: Path = Path("reports/fuzz"),
) -> int:
    """Differentiate random programs by every method.

    A method that disagrees with the referee where another one agrees is a finding: its
    program is shrunk and written as a pytest file. The same command goes on where the
    last run stopped, also after Ctrl-C. Needs Hypothesis.

    With --compositions each program is differentiated by a random composition of the
    transforms of JAX, PyTorch, TensorFlow, autograd, PyTensor and tinygrad, as the jvp of a
    vmap of a checkpoint: of those named by --peers, by default of all that are installed.

    Parameters
    ----------
    seconds
        How long to run.
    peers : jax,…|all|none
        The packages to test as well.
    compositions
        Differentiate by random compositions of each package's own transforms.
    output : DIR
        The folder of the findings.

    Examples
    --------
    difflab fuzz --seconds 60
    difflab fuzz --seconds 3600 --peers all -o fuzz
    difflab fuzz --compositions --peers jax,torch --seconds 3600 -o compositions
    """
    from difflab.core.optional import require

    require("hypothesis")
    from difflab.testing.fuzz.campaign import Campaign

    campaign = Campaign.resumed(output, _composed(peers) if compositions else _panel(peers))
    try:
        new = campaign.run(seconds, say)
    except KeyboardInterrupt:
        emit(_counts(campaign))
        raise
    emit(_counts(campaign))
    return int(new > 0)


def _panel(peers: str) -> Panel:
    """Return difflab's own methods and the chosen peers."""
    from difflab.testing.fuzz.panel import Panel

    return Panel(_methods(peers))


def _composed(peers: str) -> CompositionPanel:
    """Return the chosen packages, each with its transforms."""
    from difflab.errors import InputError
    from difflab.methods import registry
    from difflab.testing.fuzz.compositions.framework import FRAMEWORKS
    from difflab.testing.fuzz.compositions.panel import CompositionPanel

    missing = {name: registry.peers()[name].missing() for name in FRAMEWORKS}
    names: Sequence[str] = [name for name in FRAMEWORKS if not missing[name]]
    if peers not in ("none", "all"):
        chosen = parse_names(peers) or []
        names = [one_of(name, list(FRAMEWORKS), "package with transforms") for name in chosen]
    for name in names:
        if missing[name]:
            raise InputError(str(missing[name]))
    if not names:
        raise InputError("no package with transforms is installed", hint=str(missing["jax"]))
    return CompositionPanel(names)


def _methods(peers: str) -> Mapping[str, Method]:
    """Return difflab's own methods and the chosen peers, all in this process."""
    from difflab.methods import registry

    available = registry.peers()
    usable = [name for name, peer in available.items() if not peer.missing()]
    names = {"none": [], "all": usable}.get(peers)
    if names is None:
        names = parse_names(peers) or []
    chosen = {name: registry.find(one_of(name, list(available), "peer")) for name in names}
    return {**registry.own(), **chosen}


def _counts(campaign: Campaign) -> str:
    """Return the table of verdicts, and the findings."""
    from difflab.core.table import Column, Table

    panel = campaign.panel
    counts, verdicts = panel.counts, panel.verdicts
    rows = [(name, *(counts[name, verdict] or "" for verdict in verdicts)) for name in panel.names]
    columns = [Column("method"), *(Column(verdict, right=True) for verdict in verdicts)]
    lines = [
        Table(columns, rows).text(),
        f"{campaign.programs:,} programs judged, {campaign.skipped:,} without a derivative, "
        f"{campaign.batches:,} seeds; {len(campaign.records)} findings, repeated "
        f"{campaign.repeats:,} times",
        *(str(campaign.folder / record.file) for record in campaign.records),
    ]
    return "\n".join(lines) + "\n"

"""The process in which a peer is measured: some end their process on ordinary input."""

from __future__ import annotations

import numpy as np

from difflab.bench.peers.bench import measured
from difflab.bench.peers.case import PeerCase
from difflab.core.worker import Handlers, ReportProgress
from difflab.lab.sweep import Cell
from difflab.methods.peers.peer import Peer
from difflab.methods.registry import peers


def handlers(report: ReportProgress, name: str) -> Handlers:
    """Import a peer and return the handlers of its process."""
    peer = peers()[name]
    assert isinstance(peer, Peer)
    peer.start()

    def run(case: PeerCase, points: int, budget: float) -> dict[str, Cell]:
        with np.errstate(all="ignore"):
            return measured(case, peer, points, budget)

    return {"measured": run}

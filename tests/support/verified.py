"""Every function that is built while a test runs has its graph verified.

A pass is a graph in and a function out, so this checks the result of every pass, of every
derivative and of every reader of text that a test calls. A folder whose tests are to be run so has
in its `conftest.py`: ``from tests.support.verified import verified_graphs``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from difflab.graph.ir import Graph

__all__ = ["LARGEST", "verified_graphs"]

LARGEST = 2_000
"""Most nodes of a graph that is verified: tests of scale build graphs of millions."""


@pytest.fixture(autouse=True)
def verified_graphs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Verify every graph that is frozen; the value is the list of their sizes."""
    pruned: Callable[..., Any] = Graph.pruned
    sizes: list[int] = []

    def verified(self: Graph, outputs: Any) -> Any:
        graph, kept = pruned(self, outputs)
        if len(graph) <= LARGEST:
            graph.verify()
            sizes.append(len(graph))
        return graph, kept

    monkeypatch.setattr(Graph, "pruned", verified)
    return sizes

"""Tests of graphs verify every graph that they build."""

from tests.support.verified import verified_graphs

__all__ = ["verified_graphs"]

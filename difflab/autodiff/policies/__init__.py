"""Checkpoint policies: which values a checkpointed function keeps for the reverse sweep."""

from difflab.autodiff.policies.optimum import Choice, front, optimal
from difflab.autodiff.policies.policy import (
    Account,
    Policy,
    account,
    dots,
    everything,
    name,
    nothing,
    save_any_except,
    save_only,
)

__all__ = [
    "Account",
    "Choice",
    "Policy",
    "account",
    "dots",
    "everything",
    "front",
    "name",
    "nothing",
    "optimal",
    "save_any_except",
    "save_only",
]

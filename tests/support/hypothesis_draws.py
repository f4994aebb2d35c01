"""Hypothesis draws the same values from a seed, whichever modules are loaded."""

from __future__ import annotations

try:
    from hypothesis.internal.conjecture import providers
except ImportError:  # Hypothesis before 6.124, which reads no constants
    providers = None  # type: ignore[assignment]

__all__ = ["forget_local_constants"]


def forget_local_constants() -> None:
    """Let Hypothesis draw no constants from the source of the modules that are loaded.

    Later versions read the constants of every local module, and draw some of them. What a seed
    gives would depend on the tests that ran before in the same process, and a thousand files would
    be parsed for it.
    """
    if not hasattr(providers, "_get_local_constants"):  # nor does Hypothesis before 6.131
        return
    none = providers.Constants()
    providers._get_local_constants = lambda: none
    providers.CONSTANTS_CACHE.cache.clear()

"""What ends a run of machine code early, and the exception that it is raised as."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from difflab.errors import ConsistencyError, ResourceError

FAULT = 4
"""The places at the end of a table of addresses: the fault, 0 for none, and an exception."""
NO_MEMORY = -1
"""The fault of a run for which there was not enough memory."""
INTERRUPTED = -2
"""The fault of a run in which a signal handler raised an exception, which lies behind the fault."""
STOPPED = -3
"""The fault of a run that ends because another thread's run has failed."""


def raise_fault(table: NDArray[Any], accesses: Sequence[str]) -> None:
    """Raise what ended a run, if anything did.

    Parameters
    ----------
    table : array of int
        The table of addresses that the run was called with.
    accesses : sequence of str
        The accesses that checked code names as faults, counted from 1.
    """
    fault, *raised = table[-FAULT:].tolist()
    if fault in (0, STOPPED):
        return
    if fault == INTERRUPTED:
        restore = ctypes.pythonapi.PyErr_Restore
        restore.argtypes, restore.restype = [ctypes.c_void_p] * 3, None
        restore(*raised)  # raises the exception
    if fault == NO_MEMORY:
        raise ResourceError(
            "there is not enough memory for the values of all steps of a while_loop",
            hint="reverse mode keeps them; forward mode keeps one",
        )
    raise ConsistencyError(f"machine code would leave its arrays: {accesses[fault - 1]}")

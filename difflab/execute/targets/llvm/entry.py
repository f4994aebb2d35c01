"""The machine code that Python calls: it reads arguments, runs compiled code, makes results.

One function, a vectorcall, serves every compiled function: it finds what is called in the record
of `machine_call`. It computes only if all arguments are exactly what the record states: Python
floats, and aligned contiguous float64 arrays of the shapes of the inputs; the keyword ``out`` may
give memory for the results. Where all inputs are scalars, it also computes batches: such arrays of
one axis and length, whose results are new arrays. Any other call is passed on to the Python method
that calls without machine code, before anything but the record's own memory has been written.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from difflab.execute.targets.llvm import engine
from difflab.execute.targets.llvm.entry_code import SYMBOLS, text
from difflab.execute.targets.llvm.libraries import host
from difflab.execute.targets.llvm.python_objects import Layouts


@cache
def entry(layouts: Layouts) -> int:
    """Return the address of the function; machine code is loaded at the first call.

    It is 0 if there is none: LLVM or Python lacks something that the code needs.

    Examples
    --------
    >>> from difflab.execute.targets.llvm.python_objects import layouts
    >>> found = layouts()
    >>> found is None or entry(found) == entry(found) > 0
    True
    """
    try:
        module = engine.linked(text(layouts), SYMBOLS, host(), 0, inlined=True)
    except Exception:  # whatever it is, calls are Python code
        return 0
    _KEPT.append(module)
    return int(module.get_function_address("entry"))


def loaded() -> bool:
    """Return whether the function is there already."""
    return bool(_KEPT)


_KEPT: list[Any] = []
"""The machine code, which is never unloaded: objects that are called by it may outlive anything."""

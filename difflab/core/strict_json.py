"""Strict JSON: non-finite floats as strings, integers of any length, no control characters."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

# JSON escapes only the control characters below U+0020. The others that a terminal interprets
# occur only inside strings, where an escape is equivalent. A lone surrogate, by which Python
# represents a byte of an argument that is not UTF-8, is not valid in JSON.
_CONTROL = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def strict(value: Any) -> Any:
    """Return a value as strict JSON represents it.

    Non-finite numbers become ``"nan"``, ``"inf"`` and ``"-inf"``, arrays nested lists, and
    dataclasses objects.

    Examples
    --------
    >>> strict(0.5), strict(float("-inf")), strict({"x": [1, float("nan")]})
    (0.5, '-inf', {'x': [1, 'nan']})
    """
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, str):
        return str(value)
    if is_dataclass(value):
        return {item.name: strict(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): strict(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [strict(item) for item in value]
    import numpy as np

    array = np.asarray(value)
    finite = array.dtype.kind != "f" or bool(np.isfinite(array).all())
    return array.tolist() if finite else strict(array.tolist())


def dumps(record: Any, indent: int | None = 2) -> str:
    """Return a record of JSON's types as strict JSON text, safe to print on a terminal."""
    with long_integers():
        text = json.dumps(record, indent=indent, allow_nan=False, ensure_ascii=False)
    whole = _LONE_SURROGATE.sub("\ufffd", text)
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", whole)


@contextmanager
def long_integers() -> Iterator[None]:
    """Lift Python's limit of 4300 digits for integers, which the size of a tree may exceed."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(limit)

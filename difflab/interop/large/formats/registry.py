"""The format of points and of results, by the ending of a file's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from difflab.core.conversions import without_parts
from difflab.errors import InputError, PointError
from difflab.graph.function import Function
from difflab.graph.names import element_names
from difflab.interop.large.formats.arrays import (
    ArrayPoints,
    DaskPoints,
    NpyPoints,
    NpyResults,
    ZarrPoints,
    ZarrResults,
)
from difflab.interop.large.formats.protocol import Points, ResultLayout, Results
from difflab.interop.large.formats.tables import (
    CsvPoints,
    CsvResults,
    ParquetPoints,
    ParquetResults,
)

_FORMATS: Mapping[str, tuple[Callable[..., Points], Callable[..., Results]]] = {
    ".npy": (NpyPoints, NpyResults),
    ".zarr": (ZarrPoints, ZarrResults),
    ".parquet": (ParquetPoints, ParquetResults),
    ".csv": (CsvPoints, CsvResults),
}
"""How points are read from a file for inputs of these names, and results begun in a folder."""


def check_ending(path: Path, what: str) -> str:
    """Return the ending of a name.

    Raises
    ------
    InputError
        It is no format.

    Examples
    --------
    >>> check_ending(Path("out.NPY"), "the result")
    '.npy'
    """
    ending = path.suffix.lower()
    if ending not in _FORMATS:
        raise InputError(
            f"cannot tell the format of {what} from {str(path)!r}",
            hint=f"end the name in {', '.join(_FORMATS)}",
        )
    return ending


def opened_points(source: Any, function: Function) -> Points:
    """Return the points of a file, an array or a Dask array.

    Raises
    ------
    InputError
        The source is none of these, cannot be read, or its points are not those of the function.
    MissingDependencyError
        A package that reads the format is not installed.
    """
    source = without_parts(source, "the array of points", PointError)
    if isinstance(source, np.ndarray):
        return ArrayPoints(source, function.n)
    if is_dask_array(source):
        return DaskPoints(source, function.n)
    if not isinstance(source, str | Path):
        raise InputError(
            f"points are read from a file, a NumPy or a Dask array, not {type(source).__name__}"
        )
    path = Path(source)
    names = element_names(function.inputs, function.input_shapes)
    ending = check_ending(path, "the points")
    if not path.exists():
        raise InputError(f"cannot read {str(path)!r}: no such file or directory")
    return _FORMATS[ending][0](path, names)


def is_dask_array(source: Any) -> bool:
    """Return whether a value is a Dask array, without importing Dask."""
    module, name = type(source).__module__, type(source).__name__
    return name == "Array" and module.startswith("dask.array")


def opened_results(ending: str, folder: Path, layout: ResultLayout) -> Results:
    """Return the unfinished result in a folder, which is begun if it is not there."""
    return _FORMATS[ending][1](folder, layout)

"""The cases of a test that is marked with ``@pytest.mark.gradients``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from difflab.core.conversions import host_reals
from difflab.errors import DifflabError

_SEED = 0


def points(
    points: int | Sequence[Any],
    *,
    dtypes: Sequence[str] | str = ("float64",),
    shape: int | tuple[int, ...] = (),
    between: tuple[float, float] = (-1.0, 1.0),
) -> dict[str, NDArray[Any]]:
    """Return the points of the marker by their names.

    Parameters
    ----------
    points : int or sequence
        Points, as arrays or nested lists; or how many random ones.
    dtypes : sequence of str
        The precisions; every point is a case in each.
    shape : int or tuple of int
        The shape of a random point.
    between : pair of float
        The range of its components.

    Raises
    ------
    ValueError
        There is no point, a point is not an array of real numbers, or there is no such type.

    Examples
    --------
    >>> points([[1.0, 2.0]], dtypes=("float64", "float32"))["float32-0"]
    array([1., 2.], dtype=float32)
    >>> sorted(points(2, shape=3))
    ['float64-0', 'float64-1']
    """
    if isinstance(points, int):
        draw = np.random.default_rng(_SEED)
        chosen = [draw.uniform(*between, shape) for _ in range(points)]
    else:
        chosen = [_point(value) for value in points]
    if not chosen:
        raise ValueError("there are no points")
    names = (dtypes,) if isinstance(dtypes, str) else dtypes
    return {
        f"{name}-{number}": point.astype(_dtype(name))
        for name in names
        for number, point in enumerate(chosen)
    }


def _point(value: Any) -> NDArray[Any]:
    try:
        return host_reals(value, "it")
    except DifflabError as error:
        raise ValueError(f"a point is not an array of real numbers: {value!r}") from error


def _dtype(name: str) -> np.dtype[Any]:
    try:
        dtype = np.dtype(name)
    except TypeError as error:
        raise ValueError(f"there is no type {name!r}") from error
    if dtype.kind != "f":
        raise ValueError(f"{name!r} is not a floating-point type")
    return dtype


def parametrize(metafunc: pytest.Metafunc, marker: pytest.Mark) -> None:
    """Make a case of every point, as the argument ``point``.

    Raises
    ------
    pytest.UsageError
        The test takes no ``point``, or an argument of the marker is at fault.
    """
    file, line, _ = metafunc.definition.location
    where = f"{file}:{(line or 0) + 1}: {metafunc.definition.name}"
    if "point" not in metafunc.fixturenames:
        raise pytest.UsageError(
            f"{where} is marked with `gradients` and has no argument `point`: add it"
        )
    try:
        cases = points(*marker.args, **marker.kwargs)
    except (TypeError, ValueError) as error:
        raise pytest.UsageError(f"{where}, marker `gradients`: {error}") from error
    metafunc.parametrize("point", list(cases.values()), ids=list(cases))

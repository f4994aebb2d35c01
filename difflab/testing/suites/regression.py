"""Gradients of an earlier run, stored beside the tests, that later runs are compared with."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from difflab.core.strict_json import strict
from difflab.core.system import open_regular, write_whole
from difflab.errors import DifflabError, InputError
from difflab.graph.pytree import flatten, leaf_paths
from difflab.testing.checker.arguments import double_quoted

_SCHEMA = "difflab.gradients/1"
_SHOWN = 5
_ROUNDINGS = 64  # units of rounding of the largest component, by which every other may differ


class RegressionMismatch(DifflabError, AssertionError):
    """The gradients differ from the stored ones, or none were stored."""


def stored_at(module: Path, test: str) -> Path:
    """Return the file of a test: in a folder of its module's name, as pytest-regressions has it.

    Examples
    --------
    >>> stored_at(Path("tests/test_loss.py"), "test_gradient[float32-0]").as_posix()
    'tests/test_loss/test_gradient_float32-0_.json'
    """
    return module.with_suffix("") / (re.sub(r"[^\w.-]", "_", test) + ".json")


class GradientRegression:
    """The stored gradients of one test.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    regenerate : bool
        Whether to store the gradients anew.
    """

    def __init__(self, path: Path, *, regenerate: bool = False) -> None:
        self._path = path
        self._regenerate = regenerate

    def __call__(
        self, gradients: ArrayLike | Mapping[str, Any] | Any, *, rtol: float | None = None
    ) -> None:
        r"""Raise `RegressionMismatch` unless the gradients are the stored ones.

        A component may differ by `rtol` of itself and by 64 units of rounding of the largest
        component of its array, since another processor or another library adds in another order.

        Parameters
        ----------
        gradients : array_like, mapping of str to array_like, or tree
            The gradient, several by name, or a tree of dicts, lists, tuples and dataclasses, whose
            parts are named as in Python. float32 and float16 are stored as such.
        rtol : float, optional
            The relative tolerance; by default :math:`ε^{2/3}` of the stored precision, 4e-11 in
            float64.

        Raises
        ------
        RegressionMismatch
            They differ; or there is no file yet or it was to be stored anew, and now it is there.
        """
        __tracebackhide__ = True
        arrays = {name: _array(value, name) for name, value in _named(gradients).items()}
        if self._regenerate or not self._path.exists():
            self._store(arrays)
        problems = list(_differences(self._load(), arrays, rtol))
        if problems:
            raise RegressionMismatch(
                f"the gradients are not those stored in {self._path}\n"
                + "\n".join(problems)
                + "\nif the new ones are right, store them with --force-regen"
            )

    def _store(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write the file, and fail, so that a run without stored gradients never passes."""
        __tracebackhide__ = True
        existed = self._path.exists()
        entries = {
            name: {"dtype": str(array.dtype), "shape": array.shape, "values": array.tolist()}
            for name, array in arrays.items()
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        document = json.dumps({"schema": _SCHEMA, "gradients": strict(entries)}, indent=1)
        write_whole({self._path: f"{document}\n".encode()})
        done = "stored anew" if existed else "stored for the first time"
        raise RegressionMismatch(
            f"the gradients were {done}: {self._path}\nread the file, and run the test again"
        )

    def _load(self) -> dict[str, NDArray[Any]]:
        try:
            with open_regular(self._path) as file:
                document = json.load(file)
            if document["schema"] != _SCHEMA:
                raise ValueError(f"its schema is {document['schema']!r}")
            return {
                name: np.array(entry["values"], dtype=entry["dtype"]).reshape(entry["shape"])
                for name, entry in document["gradients"].items()
            }
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"cannot read the stored gradients in {self._path}: {error}",
                hint="store them again with --force-regen",
            ) from error


def _named(gradients: Any) -> dict[str, Any]:
    """Return the arrays of a tree by their names; those of a flat mapping by its keys."""
    if isinstance(gradients, Mapping):
        arrays: dict[str, Any] = {}
        for key, value in gradients.items():
            for path, leaf in _parts(value):
                arrays[f"{key}{path}"] = leaf
        return arrays
    return {f"gradient{path}": leaf for path, leaf in _parts(gradients)}


def _parts(value: Any) -> list[tuple[str, Any]]:
    """Return the leaves of a tree with their paths; a list of scalars is one array."""
    leaves, structure = flatten(value)
    nested = [token[0] for token in structure.tokens]
    if all(kind in (list, tuple, "leaf") for kind in nested) and not any(map(np.ndim, leaves)):
        return [("", value)]
    return list(zip(map(double_quoted, leaf_paths(structure)), leaves, strict=True))


def _array(value: ArrayLike, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(value)
        return array if array.dtype.kind == "f" else array.astype(float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not an array of real numbers: {error}") from error


def _differences(
    stored: Mapping[str, NDArray[Any]], computed: Mapping[str, NDArray[Any]], rtol: float | None
) -> list[str]:
    """Return a line for each array, and for each of its first components, that differs."""
    lines = [f"  {name}: stored, and not computed now" for name in stored if name not in computed]
    for name, new in computed.items():
        if name not in stored:
            lines.append(f"  {name}: computed, and not stored")
            continue
        old = stored[name]
        if (old.shape, old.dtype) != (new.shape, new.dtype):
            was, now = (f"{array.dtype} {array.shape}" for array in (old, new))
            lines.append(f"  {name}: was {was}, is {now}")
            continue
        lines += _components(name, old, new, rtol)
    return lines


def _components(name: str, old: NDArray[Any], new: NDArray[Any], rtol: float | None) -> list[str]:
    eps = float(np.finfo(old.dtype).eps)
    relative = eps ** (2 / 3) if rtol is None else rtol
    before, after = old.astype(float), new.astype(float)
    largest = np.max(np.abs(before), initial=0.0, where=np.isfinite(before))
    margin = relative * np.abs(before) + _ROUNDINGS * eps * largest
    same = (before == after) | (np.isnan(before) & np.isnan(after))
    with np.errstate(invalid="ignore"):
        same |= np.isfinite(before) & (np.abs(after - before) <= margin)
    wrong = np.argwhere(~same)
    lines = []
    for index in wrong[:_SHOWN]:
        element = tuple(map(int, index))
        at = "[" + ", ".join(map(str, element)) + "]" if element else ""
        lines.append(f"  {name}{at}: was {float(before[element])!r}, is {float(after[element])!r}")
    if len(wrong) > _SHOWN:
        lines.append(f"  … and {len(wrong) - _SHOWN} more")
    return lines

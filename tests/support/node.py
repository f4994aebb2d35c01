"""Printed JavaScript, run by Node.js: many functions in one process."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.language.printers import javascript

__all__ = ["NODE", "Script", "needs_node", "run", "script"]

NODE = shutil.which("node") or shutil.which("nodejs")
needs_node = pytest.mark.skipif(NODE is None, reason="needs Node.js")

_RUN = """
const shown = (y) => Object.is(y, -0) ? "-0" : String(Number(y));
const flat = (y) => Array.isArray(y) ? y.flatMap(flat) : [shown(y)];
console.log(JSON.stringify(calls.map(([f, points]) => points.map((x) => flat(f(...x))))));
"""


@dataclass(frozen=True)
class Script:
    """A function in JavaScript, the shapes of its inputs, and the points at which it is called."""

    source: str
    shapes: Sequence[Shape]
    points: Any


def script(function: Function, points: Any) -> Script:
    """Return the printed function, to be called at packed points (N, n)."""
    return Script(javascript(function), function.input_shapes, points)


def run(scripts: Sequence[Script]) -> list[np.ndarray[Any, Any]]:
    """Return the flattened results of each script, (N, m)."""
    calls = []
    for each in scripts:
        arguments = [_arguments(each.shapes, point) for point in np.asarray(each.points).tolist()]
        calls.append(f"[(() => {{ {each.source}\nreturn f; }})(), {json.dumps(arguments)}]")
    text = f'"use strict";\nconst calls = [{", ".join(calls)}];\n{_RUN}'
    done = subprocess.run(
        [str(NODE), "--stack-size=4000", "-"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [np.array(rows, dtype=object).astype(float) for rows in json.loads(done.stdout)]


def _arguments(shapes: Sequence[Shape], point: Sequence[float]) -> list[Any]:
    found: list[Any] = []
    start = 0
    for shape in shapes:
        size = int(np.prod(shape))
        found.append(list(point[start : start + size]) if shape else point[start])
        start += size
    return found

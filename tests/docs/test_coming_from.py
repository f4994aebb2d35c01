"""The tables of `docs/coming-from/`: both columns are run, and "Equal" is compared."""

from __future__ import annotations

import ast
import doctest
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from difflab.graph.function import Function
from tests.support.documents import PROGRAMS, ROOT, blocks

FOLDER = ROOT / "docs" / "coming-from"
PEERS = {
    "sympy": "sympy",
    "jax": "jax",
    "gradcheck": "torch",
    "numdifftools": "numdifftools",
    "casadi": "casadi",
}
TOLERANCE = 1e-5
"""JAX computes in float32 unless told otherwise; differences at a step have fewer digits."""


class Row(NamedTuple):
    theirs: str
    ours: str
    differs: str


def rows(page: str) -> list[Row]:
    text = (FOLDER / f"{page}.md").read_text("utf-8")
    lines = re.findall(r"^\| (`.*) \|$", text, re.MULTILINE)
    found = [[cell.strip() for cell in line.split(" | ")] for line in lines]
    assert all(len(cells) in (2, 3) for cells in found), found
    return [Row(cells[0], cells[1].removesuffix(" |"), "".join(cells[2:])) for cells in found]


def code(cell: str) -> str:
    """Return the code of a cell that is one piece of code."""
    assert re.fullmatch(r"`[^`]+`", cell), cell
    return cell[1:-1]


def setup(page: str, *, peer: bool) -> dict[str, Any]:
    """Return the names that the first block of a page defines, and the second if `peer`."""
    text = (FOLDER / f"{page}.md").read_text("utf-8")
    python = [block.text for block in blocks(text) if block.language == "python"]
    names: dict[str, Any] = {}
    for block in python[: 2 if peer else 1]:
        for example in doctest.DocTestParser().get_examples(block):
            exec(example.source, names)
    return names


def value(cell: str, names: dict[str, Any]) -> Any:
    return eval(compile(ast.parse(code(cell), mode="eval"), "<table>", "eval"), names)


def numbers(result: Any) -> Any:
    """Return a result as flat numbers."""
    if isinstance(result, tuple | list):
        return np.concatenate([numbers(part) for part in result])
    return np.asarray(result, dtype=float).ravel()


def compared(theirs: Any, ours: Any, names: dict[str, Any]) -> None:
    """Compare results of "Equal": formulas as formulas, functions at a point, else numbers."""
    if isinstance(ours, Function) and callable(theirs):
        theirs, ours = theirs(names["x"]), ours(names["x"])
    elif "sympy" in names and isinstance(theirs, names["sympy"].Expr) and theirs.free_symbols:
        formula = ours.to_sympy() if isinstance(ours, Function) else ours
        plain = {symbol: names["sympy"].Symbol(symbol.name) for symbol in formula.free_symbols}
        assert names["sympy"].simplify(formula.subs(plain) - theirs) == 0
        return
    np.testing.assert_allclose(numbers(ours), numbers(theirs), rtol=TOLERANCE, atol=TOLERANCE)


MODEL = """import numpy as np


def loss(w):
    return np.log1p(np.exp(w)).sum()


def loss_gradient(w):
    return 1 / (1 + np.exp(-w))
"""


def value_or_command(cell: str, names: dict[str, Any], folder: Path) -> Any:
    if not code(cell).startswith("difflab "):
        return value(cell, names)
    name, *arguments = shlex.split(code(cell))
    (folder / "my_model.py").write_text(MODEL)
    done = subprocess.run(
        [*PROGRAMS[name], *arguments],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


CASES = [
    pytest.param(page, row, id=f"{page}: {row.ours.strip('`')}")
    for page in PEERS
    for row in rows(page)
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("page", "row"), CASES)
def test_both_columns_of_a_table_run(
    page: str, row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a call may write a file
    try:
        names = setup(page, peer=True)
    except ImportError:
        names = setup(page, peer=False)
        try:
            value_or_command(row.ours, names, tmp_path)
        except NameError:  # an object of the library
            pytest.skip(f"{PEERS[page]} is not installed")
        return
    ours = value_or_command(row.ours, names, tmp_path)
    theirs = value(row.theirs, names)
    if row.differs.startswith("Equal"):
        compared(theirs, ours, names)


@pytest.mark.parametrize("page", PEERS)
def test_every_line_of_a_table_is_a_row(page: str) -> None:
    text = (FOLDER / f"{page}.md").read_text("utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows(page)) == len(lines) - 1 >= 6


def test_different_results_are_found() -> None:
    import sympy

    x = sympy.Symbol("x")
    with pytest.raises(AssertionError):
        compared(np.ones(2), np.array([1.0, 1.1]), {})
    with pytest.raises(AssertionError):
        compared(sympy.sin(x), sympy.cos(x), {"sympy": sympy})


def test_every_page_is_in_the_index() -> None:
    index = (FOLDER / "index.md").read_text("utf-8")
    assert sorted(path.stem for path in FOLDER.glob("*.md")) == sorted([*PEERS, "index"])
    assert all(f"({page}.md)" in index for page in PEERS)

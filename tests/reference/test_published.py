"""The counts of docs/explanation/published.md are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import difflab as dl
from difflab.lab.problems import helmholtz, logistic, product

PAGE = (Path(__file__).parents[2] / "docs" / "explanation" / "published.md").read_text("utf-8")


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading."""
    part = PAGE[PAGE.index(heading) :].split("\n\n| ", 1)[1].split("\n\n", 1)[0]
    return [
        [cell.strip() for cell in line.strip("| ").split("|")] for line in part.splitlines()[2:]
    ]


def operations(function: dl.Function) -> int:
    return dl.count(function).operations


@pytest.mark.parametrize("row", rows("table 1: the logistic map"), ids=lambda row: row[0])
def test_logistic_map(row: list[str]) -> None:
    f = dl.parse(logistic(int(row[0])))
    found = [f, dl.gradient(f, mode="forward"), dl.gradient(f, mode="reverse")]
    assert [str(operations(one)) for one in found] == row[3:]


@pytest.mark.parametrize("row", rows("table 5: gradient over function"), ids=lambda row: row[0])
def test_helmholtz(row: list[str]) -> None:
    f = dl.parse(helmholtz(int(row[0])))
    found = [dl.gradient(f, mode="forward"), dl.value_and_gradient(f)]
    assert [f"{operations(one) / operations(f):.2f}" for one in found] == row[4:6]


@pytest.mark.parametrize("row", rows("Speelpenning's product"), ids=lambda row: row[0])
def test_speelpenning(row: list[str]) -> None:
    n = int(row[0])
    f = dl.parse(product(n))
    found = [f, dl.gradient(f, mode="reverse"), dl.gradient(f, mode="forward")]
    assert [str(operations(one)) for one in found] == [row[1], row[3], row[4]]
    assert int(row[2]) == 3 * n - 6
    assert re.fullmatch(r"\d+", row[3])

"""A comparison as it is saved: the seed expression at (2, 5), and one with hostile text."""

import copy
import json
from pathlib import Path

import pytest

HOSTILE = "=cmd()|'/C calc'!A0 <script>alert(1)</script> $\\frac{a}{b} `x` | \x1b[31mred\x07\x9b2J"


@pytest.fixture
def seed():
    return json.loads((Path(__file__).parent / "seed.json").read_text(encoding="utf-8"))


@pytest.fixture
def hostile(seed):
    record = copy.deepcopy(seed)
    record["expression"]["text"] = HOSTILE
    record["expression"]["inputs"][0]["name"] = "<b>$x$\x1b[1m"
    record["point"] = {"<b>$x$\x1b[1m": 2.0, "x2": 5.0}
    first, second = record["methods"][:2]
    first.update(name="@plug|in\x1b[0m<i>", message="-1+1 <img src=x onerror=alert(1)>\x1b]0;t\x07")
    second.update(status="failed", verdict=None, message="=1+1 `code` *bold*")
    return record

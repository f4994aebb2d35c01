"""The edges of arithmetic in every language that difflab prints, by running the printed code.

``python -m tests.language.printers.test_edges`` runs the languages that are installed, keeps what
was recorded of the others, and writes the record, `tests/data/printed_edges.json`, and the page
`docs/reference/printed-edges.md` anew.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import tempfile
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from difflab.core.strict_json import strict
from difflab.language import parse, printers
from tests.support.documents import ROOT
from tests.support.languages import (
    JAVASCRIPT,
    LANGUAGES,
    LIBRARIES,
    STAN,
    C,
    Language,
    Library,
    OnDevice,
)

RECORD = ROOT / "tests" / "data" / "printed_edges.json"
PAGE = ROOT / "docs" / "reference" / "printed-edges.md"
START = "<!-- `python -m tests.language.printers.test_edges` writes this part. -->\n"
END = "<!-- Here it ends. -->"
COMMAND = "python -m tests.language.printers.test_edges writes it anew"
ERROR = "an exception"
INF, NAN, TINY = math.inf, math.nan, 5e-324


def in_python(sources: Sequence[str], functions: Any, points: Any, _: Path) -> list[Any]:
    """Run printed Python code, which has an argument per input."""
    results = []
    for k, (source, at) in enumerate(zip(sources, points, strict=True)):
        names: dict[str, Any] = {}
        exec(compile(source, "<printed>", "exec"), names)
        found = [called(names[f"call{k}"], point) for point in at.tolist()]
        results.append(np.array(found, dtype=object)[:, None])
    return results


def called(code: Any, point: Sequence[float]) -> Any:
    """Return a number, or that Python raises an exception, as it does where C has nan or inf."""
    try:
        return float(code(*point))
    except (ArithmeticError, ValueError):
        return ERROR


PYTHON = Language("Python", printers.python, "python3", in_python)
ALL = [PYTHON, C, *LANGUAGES, JAVASCRIPT, STAN, *LIBRARIES]
HERE = [language for language in ALL if not isinstance(language, OnDevice)]
"""Those whose code runs on a processor."""

CASES: Sequence[tuple[str, Sequence[Sequence[float]]]] = (
    ("mod(x, y)", [(-7, 3), (7, -3), (-7, -3), (-6, 3), (5.5, INF), (-5.5, INF), (1, 0), (INF, 2)]),
    (
        "round(x)",
        [(0.5,), (1.5,), (2.5,), (-0.5,), (-2.5,), (0.49999999999999994,), (2.0**52 + 1,)],
    ),
    ("floor(x)", [(-0.0,), (-0.5,), (1e300,), (INF,), (NAN,)]),
    ("ceil(x)", [(-0.5,), (-0.0,), (TINY,)]),
    ("sign(x)", [(NAN,), (0.0,), (-0.0,), (-INF,), (TINY,)]),
    ("abs(x)", [(-0.0,), (NAN,), (-TINY,)]),
    ("max(x, y)", [(1, NAN), (NAN, 1), (-0.0, 0.0), (0.0, -0.0), (INF, NAN)]),
    ("min(x, y)", [(1, NAN), (NAN, 1), (-0.0, 0.0), (0.0, -0.0), (-INF, NAN)]),
    ("clip(x, 0, 1)", [(NAN,), (-0.0,), (INF,)]),
    ("relu(x)", [(NAN,), (-0.0,)]),
    ("x^y", [(0, 0), (0, -1), (-0.0, -1), (-8, 1 / 3), (-8, 3), (1, NAN), (NAN, 0), (-1, INF)]),
    ("x^y", [(INF, 0), (0.5, INF), (-0.0, 3), (-2, 0.5), (TINY, 0.5)]),
    ("sqrt(x)", [(-1,), (-0.0,), (TINY,)]),
    ("cbrt(x)", [(-8,), (-0.0,), (-INF,)]),
    ("log(x)", [(0.0,), (-0.0,), (-1,), (TINY,), (INF,)]),
    ("log1p(x)", [(-1,), (1e-300,), (-0.0,), (-2,)]),
    ("expm1(x)", [(1e-300,), (-0.0,), (-INF,), (710,)]),
    ("exp(x)", [(-745,), (-746,), (710,)]),
    ("gamma(x)", [(0.0,), (-0.0,), (-1,), (171,), (172,), (-INF,)]),
    ("loggamma(x)", [(0.0,), (-1,), (1,), (INF,)]),
    ("hypot(x, y)", [(INF, NAN), (NAN, -INF), (3e200, 4e200), (TINY, 0), (NAN, 1)]),
    ("atan2(y, x)", [(0.0, 0.0), (0.0, -0.0), (-0.0, 0.0), (-0.0, -0.0), (-1, -0.0), (INF, INF)]),
    ("atan2(y, x)", [(-INF, INF), (-INF, -0.0), (NAN, 0)]),
    ("asin(x)", [(1.0000000000000002,), (-0.0,)]),
    ("acosh(x)", [(0.5,), (1,)]),
    ("atanh(x)", [(1,), (-1,), (2,)]),
    ("tanh(x)", [(INF,), (-0.0,), (TINY,)]),
    ("sigmoid(x)", [(-745,), (800,), (-INF,), (NAN,)]),
    ("softplus(x)", [(-745,), (800,), (-INF,), (INF,)]),
    ("logaddexp(x, y)", [(-INF, -INF), (INF, INF), (INF, -INF), (800, 0)]),
    ("sin(x)", [(INF,), (-0.0,), (1e22,), (TINY,)]),
    ("x/y", [(1, 0.0), (1, -0.0), (0, 0), (TINY, 2), (INF, INF)]),
    ("x*y", [(0, INF), (-0.0, 1), (1e-308, 1e-10), (TINY, 0.5)]),
    ("x + y", [(INF, -INF), (-0.0, 0.0), (-0.0, -0.0), (TINY, -TINY)]),
    ("where(x > y, x, y)", [(NAN, 1), (1, NAN)]),
    ("heaviside(x)", [(0.0,), (-0.0,), (NAN,)]),
    ("erf(x)", [(-0.0,), (INF,), (TINY,)]),
)
LIKE_X_FIRST = re.compile("^atan2")


@dataclass(frozen=True)
class Case:
    """A formula at a point; the point has the values in the order of the formula's arguments."""

    formula: str
    at: tuple[float, ...]

    @property
    def packed(self) -> list[float]:
        """The point in the order of the inputs."""
        turned = LIKE_X_FIRST.match(self.formula)
        return [*map(float, reversed(self.at) if turned else self.at)]

    @property
    def shown(self) -> str:
        """The formula with its arguments, such as ``mod(-7, 3)``."""
        names = iter("yx" if LIKE_X_FIRST.match(self.formula) else "xy")
        text = self.formula
        for name, value in zip(names, self.at, strict=False):
            number = number_text(value)
            inside = "(" in self.formula and "where" not in self.formula
            given = number if inside or not set(number) & set("-/") else f"({number})"
            text = re.sub(rf"\b{name}\b", given, text)
        return text


def number_text(value: float | str) -> str:
    """Return a number in few characters; a zero has its sign."""
    if isinstance(value, str):
        return value
    known = {1 / 3: "1/3", TINY: "5e-324", -TINY: "-5e-324"}
    text = known.get(value) or repr(float(value))
    return text.removesuffix(".0") if value or math.copysign(1, value) > 0 else "-0.0"


def cases() -> list[Case]:
    return [Case(formula, tuple(map(float, at))) for formula, points in CASES for at in points]


def own() -> list[float]:
    with np.errstate(all="ignore"):
        return [float(parse(case.formula).values(np.array(case.packed))[0]) for case in cases()]


Answer = float | str | None
"""A number, an exception, or None for what is not printed."""


def computed(language: Language) -> list[Answer]:
    """Return what the printed code gives at every case; None if the language cannot print it."""
    found: list[Answer] = [None] * len(cases())
    listed = [(k, case, parse(case.formula)) for k, case in enumerate(cases())]
    listed = [entry for entry in listed if language.prints(entry[2])]
    with tempfile.TemporaryDirectory() as folder:
        values = language.values(
            [function for _, _, function in listed],
            [case.packed for _, case, _ in listed],
            Path(folder),
        )
    for (k, _, _), value in zip(listed, values, strict=True):
        found[k] = ERROR if value[0, 0] == ERROR else float(value[0, 0])
    return found


def installed(language: Language) -> str:
    """Return the program that runs a language's code, and its version."""
    if isinstance(language, Library):
        package = language.program.partition(".")[0]
        return f"{package} {version(package).partition('+')[0]}"
    done = subprocess.run(
        [language.program, "--version"], capture_output=True, text=True, check=False
    )
    found = re.search(r"\d+\.\d+(\.\d+)?", done.stdout + done.stderr)
    return f"{language.program} {found[0] if found else ''}".strip()


def recorded() -> dict[str, Any]:
    record: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))
    for entry in record["languages"].values():
        entry["values"] = [
            value if value in (None, ERROR) else float(value) for value in entry["values"]
        ]
    return record


def same(one: Answer, other: Answer) -> bool:
    """Return whether two numbers are equal to 4 ulp, zeros with their signs."""
    if not isinstance(one, float) or not isinstance(other, float):
        return one == other
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    if one == 0 or other == 0 or math.isinf(one) or math.isinf(other):
        return repr(one) == repr(other)
    return abs(one - other) <= 4 * math.ulp(other)


def written(record: dict[str, Any]) -> str:
    """Return the table: what difflab computes, and the languages that differ."""
    languages = record["languages"]
    heads = [f"{name} by {entry['by']}" for name, entry in languages.items()]
    lines = [
        *textwrap.wrap(f"Run: {', '.join(heads)}.", 100),
        "",
        "| formula | difflab | otherwise |",
        "|---|---|---|",
    ]
    for k, (case, value) in enumerate(zip(cases(), own(), strict=True)):
        others: dict[str, list[str]] = {}
        for name, entry in languages.items():
            if entry["values"][k] is not None and not same(entry["values"][k], value):
                others.setdefault(number_text(entry["values"][k]), []).append(name)
        text = "; ".join(f"{number}: {', '.join(names)}" for number, names in others.items())
        lines.append(f"| `{case.shown}` | {number_text(value)} | {text} |")
    lacks = [f"{name}: {', '.join(lacking(entry['values']))}" for name, entry in languages.items()]
    lacks = [text for text in lacks if not text.endswith(": ")]
    return "\n".join([*lines, "", f"Not printed: {'; '.join(lacks)}." if lacks else ""])


def lacking(values: Sequence[Answer]) -> list[str]:
    """Return the formulas that a language does not print."""
    pairs = zip(cases(), values, strict=True)
    return sorted({case.formula for case, value in pairs if value is None})


def page(record: dict[str, Any]) -> str:
    before, start, rest = PAGE.read_text("utf-8").partition(START)
    assert start
    return f"{before}{start}\n{written(record)}\n{END}{rest.partition(END)[2]}"


def test_the_page_shows_the_record() -> None:
    assert PAGE.read_text("utf-8") == page(recorded()), COMMAND


@pytest.mark.parametrize("language", HERE, ids=lambda language: language.name)
def test_a_language_computes_what_is_recorded(language: Language) -> None:
    if not language.there:
        pytest.skip(f"needs {language.needed}")
    entry = recorded()["languages"].get(language.name)
    if entry is None:
        pytest.skip(f"{language.name} is not recorded")
    found = computed(language)
    wrong = [
        (case.shown, one, other)
        for case, one, other in zip(cases(), found, entry["values"], strict=True)
        if not same(one, other)
    ]
    if wrong and isinstance(language, Library) and installed(language) != entry["by"]:
        pytest.skip(f"{installed(language)} is not {entry['by']}: {wrong}")
    assert not wrong, COMMAND


if __name__ == "__main__":
    older = recorded()["languages"] if RECORD.exists() else {}
    entries: dict[str, Any] = {}
    for language in HERE:
        if language.there:
            entries[language.name] = {
                "by": installed(language),
                "values": strict(computed(language)),
            }
        elif language.name in older:
            entries[language.name] = strict(older[language.name])
    RECORD.write_text(json.dumps({"languages": entries}, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(recorded()), encoding="utf-8")

"""`docs/reference/schemas.md` states the columns of a comparison, and its schemas follow from them.

``python -m tests.docs.test_schemas`` writes the tables of the page anew.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import Any

import pytest

from difflab.lab import record
from difflab.lab.kinds import MATRIX, SIZES, RecordColumn, RecordPart, columns
from difflab.methods.protocol import Size
from tests.support.documents import ROOT

PAGE = ROOT / "docs" / "reference" / "schemas.md"
TABLES = re.compile(r"(?<=<!-- columns -->\n).*?(?=<!-- end -->)", re.DOTALL)
NUMBER: Any = {"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]}
COUNT = {"type": "integer", "minimum": 0}
ROWS = {"type": "array", "items": {"type": "array", "items": NUMBER}}
FORMS: dict[Any, Any] = {
    RecordPart.text: {"type": "string"},
    RecordPart.flag: {"type": "boolean"},
    RecordPart.integer: COUNT,
    RecordPart.seconds: NUMBER,
    RecordPart.magnitude: NUMBER,
    RecordPart.shape: {"type": "array", "items": COUNT},
    MATRIX.read: ROWS,
    record.VALUES.read: {"type": "array", "items": NUMBER},
    record.ORDER.read: {"enum": [1, 2]},
    record.POINT.read: {"type": "object", "additionalProperties": {"$ref": "nested"}},
    record.ENVIRONMENT.read: {
        "type": "object",
        "required": ["difflab", "python", "numpy", "sympy", "cpu", "threads", "gpu"],
        "additionalProperties": {"type": ["string", "integer", "null"]},
    },
}
SINCE_3 = "declared"
"""A verdict, which the third version added."""


def form(column: RecordColumn, version: int) -> Any:
    """Return the JSON schema of the values of a column."""
    if column.read is SIZES.read:
        count = {"anyOf": [COUNT, {"type": "null"}]}
        return whole({item.name: count for item in fields(Size)})
    if column.record is not None:
        found = schema(column.record, version)
        return {"type": "array", "items": found} if column.name in LISTS else found
    if column.options:
        options = [each for each in column.options if version >= 3 or each != SINCE_3]
        return {"enum": [*map(str, options), *[None] * column.optional]}
    found = FORMS[column.read]
    if not column.optional:
        return found
    return {"anyOf": [*found.get("anyOf", [found]), {"type": "null"}]}


LISTS = ("inputs", "outputs", "methods")


def whole(properties: dict[str, Any]) -> Any:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [*properties],
        "properties": properties,
    }


def schema(part: type, version: int) -> Any:
    """Return the JSON schema of a record, from the declarations of its columns."""
    known = [column for column in columns(part) if column.since <= version]
    found = {column.name: form(column, version) for column in known}
    if part is record.Comparison:
        found = {"schema": {"const": f"difflab.comparison/{version}"}, **found}
    return whole(found)


def plain(part: Any, definitions: Any) -> Any:
    """Return a schema without references and the order of alternatives."""
    if isinstance(part, list):
        return [plain(each, definitions) for each in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        name = part["$ref"].rpartition("/")[2]
        return name if name == "nested" else plain(definitions[name], definitions)
    found = {name: plain(each, definitions) for name, each in part.items()}
    choices = found.pop("anyOf", [])
    inner = [each for choice in choices for each in choice.get("anyOf", [choice])]
    if inner:
        found["anyOf"] = sorted(inner, key=str)
    if "enum" in found:
        found["enum"] = sorted(found["enum"], key=str)
    return found


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_the_declarations_give_the_schema_of_each_version(version: int, reference: Any) -> None:
    wanted = reference(f"comparison-{version}.schema")
    definitions = wanted.pop("$defs")
    del wanted["title"], wanted["$schema"]
    assert plain(schema(record.Comparison, version), {}) == plain(wanted, definitions)


def page() -> str:
    """Return the tables of the columns."""
    parts = []
    for title, part in (
        ("The comparison", record.Comparison),
        ("Its `reference`", record.ReferenceRow),
        ("Each of its `methods`", record.MethodRow),
    ):
        method = part is record.MethodRow
        heads = ["key", *["in CSV and dataframes"] * method, "since", "meaning"]
        rows = []
        for column in columns(part):
            names = ", ".join(f"`{name}`" for name in column.cells(column.title, None))
            rows.append((f"`{column.name}`", *[names] * method, str(column.since), column.about))
        lines = [heads, ["---"] * len(heads), *rows]
        texts = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        parts.append(f"{title}:\n\n{texts}\n")
    return "\n" + "\n".join(parts) + "\n"


def test_the_page_states_the_columns() -> None:
    found = TABLES.search(PAGE.read_text("utf-8"))
    assert found is not None
    assert found[0] == page(), "python -m tests.docs.test_schemas writes it anew"


if __name__ == "__main__":
    PAGE.write_text(TABLES.sub(lambda _: page(), PAGE.read_text("utf-8")), encoding="utf-8")
    print(json.dumps(schema(record.Comparison, len(record.SCHEMAS)), indent=2))

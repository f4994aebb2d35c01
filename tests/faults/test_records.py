"""Damaged and hostile records: a page that is well formed, or a reason to leave the file out."""

import copy
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from difflab.core.strict_json import long_integers
from difflab.errors import InputError
from difflab.lab.record import from_json
from difflab.report.comparison.formats import index

SEED = json.loads((Path(__file__).parents[1] / "report" / "seed.json").read_text("utf-8"))
TEXTS = ("", "nan", "inf", "<script>alert(1)</script>", "\x1b[2J", "\ud800", "=1+1", "a" * 10_000)
NUMBERS = (0, -1, 3, 10**400, 1e308, 1e999, -0.0, 2.5, True, False)
VOID = {"meta", "br", "img", "link"}
SCALARS = st.sampled_from([None, *TEXTS, *NUMBERS])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(TEXTS), inner),
    max_leaves=6,
)


def places(node, path=()):
    """Every place in the record: its path of keys."""
    inner = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in inner:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


PLACES = sorted(places(SEED), key=repr)


class Balanced(HTMLParser):
    """Refuses elements that are not closed in order, and scripts."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        assert tag != "script"
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def changed(changes):
    """Return the record with the parts at some paths replaced or taken away."""
    record = copy.deepcopy(SEED)
    for path, value, removed in changes:
        part = record
        try:
            for key in path[:-1]:
                part = part[key]
            if removed:
                del part[path[-1]]
            else:
                part[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change has taken the place away
    return record


def shown(record):
    """Return the page over the record, or over the reason why it is left out."""
    with long_integers():
        text = json.dumps(record)
    try:
        return index([("a.json", from_json(text))], {})
    except InputError as error:
        return index([], {"a.json": error.message})


CHANGES = st.tuples(st.sampled_from(PLACES), VALUES, st.booleans())


@settings(max_examples=400)
@given(st.lists(CHANGES, min_size=1, max_size=3))
def test_any_record_is_shown_or_left_out(changes):
    page = shown(changed(changes))
    page.encode("utf-8")
    reader = Balanced()
    reader.feed(page)
    assert reader.open == []
    assert "\x1b" not in page


@pytest.mark.parametrize("value", [None, {}, [], [[[[1]]]], "text", -1, 1e999, 0.5])
def test_every_part_may_be_of_any_type(value):
    for path in PLACES:
        page = shown(changed([(path, value, False)]))
        page.encode("utf-8")
        assert page.endswith("</html>\n")


def test_integers_of_any_length_are_shown_or_left_out():
    with long_integers():
        long = 10**5000
        pages = [shown(changed([(path, long, False)])) for path in PLACES]
    assert all(page.endswith("</html>\n") for page in pages)

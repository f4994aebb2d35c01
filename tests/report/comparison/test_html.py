"""The page: it parses, it needs no network, and nothing the user wrote is markup."""

from html.parser import HTMLParser

import pytest

from difflab.report.comparison.formats import index, view

VOID = {"meta", "img", "br", "path", "use", "rect"}


class Reader(HTMLParser):
    """Collects tags, attributes and text, and checks that elements close in order."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.text, self.open = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in {"meta"}:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(text):
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


@pytest.mark.parametrize("which", ["seed", "hostile"])
def test_the_page_is_whole_and_self_contained(which, request):
    reader = read(view(request.getfixturevalue(which)).page())
    assert "svg" in reader.tags
    assert not {"script", "img", "link", "iframe", "i", "b"} & set(reader.tags)
    for _tag, name, value in reader.attributes:
        assert not name.startswith("on")
        if name in {"src", "href", "xlink:href"}:
            assert value.startswith("#")


def test_user_text_is_shown_as_it_is(hostile):
    shown = "".join(read(view(hostile).page()).text)
    assert "<script>alert(1)</script>" in shown
    assert "\\x1b[31mred\\x07\\x9b2J" in shown
    assert "\x1b" not in view(hostile).page()


def test_the_picture_takes_the_ink_of_the_page(seed):
    text = view(seed).page()
    assert "currentColor" in text
    assert "prefers-color-scheme: dark" in text


def test_the_index_shows_what_is_wrong_first_and_what_was_left_out(seed, hostile):
    hostile["methods"][2]["verdict"] = "disagree"
    text = index([("a.json", seed), ("b.json", hostile)], {"<c>.json": "not a JSON file"})
    reader = read(text)
    shown = "".join(reader.text)
    assert "2 comparisons, 1 with a method that disagrees" in shown
    assert shown.index("b.json") < shown.index("a.json")
    assert "<c>.json" in shown
    assert "script" not in reader.tags
    assert "7 of 7 agree, fastest symbolic (2.31 µs)" in shown


def test_a_fragment_leaves_the_page_around_it_alone(seed):
    text = view(seed).fragment()
    reader = read(text)
    assert not {"html", "head", "body", "meta", "title"} & set(reader.tags)
    style = text[text.index("<style>") + 7 : text.index("</style>")].strip()
    assert style.startswith(".difflab {")
    depth = 0
    for place, character in enumerate(style):
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth > 0 or place in (len(style) - 1, *range(len(".difflab ")))

"""The site of a study: every record is reached, text is escaped, tables sort in a browser."""

import json
import re
import shlex
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser

import pytest

from difflab.lab.study.cases import StudyStore
from difflab.lab.study.run import plan, run
from difflab.lab.study.study import read
from difflab.report.site.pictures import times
from difflab.report.site.site import SCRIPT, site

STUDY = """
name = "<b>study</b>"
[[grid]]
formulas = ["x^2 # <script>alert(1)</script>"]
at = {x = 3}
methods = ["forward", "finite-central"]
timing = false
[[grid]]
families = ["product"]
sizes = [3, 20]
methods = ["reverse", "complex-step"]
repeats = 1
"""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    (folder / "a.toml").write_text(STUDY, encoding="utf-8")
    with StudyStore(folder / "a.db", new=True) as store:
        run(store, plan(read(folder / "a.toml")))
        for path, content in site(store.records()).items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_bytes(content)
    return folder


class Page(HTMLParser):
    """The links, names, tags and texts of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.names, self.tags, self.blocks, self.rows = [], set(), [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.append((tag, found))
        if tag == "a":
            self.links.append(found["href"])
        if "id" in found:
            self.names.add(found["id"])
        if tag == "pre":
            self.blocks.append("")
        if tag == "tr":
            self.rows.append([])
        if tag == "td":
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.blocks and self.lasttag == "pre":
            self.blocks[-1] += data
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def pages(folder):
    paths = [folder / "index.html", *sorted((folder / "records").iterdir())]
    return {path: Page(path.read_text(encoding="utf-8")) for path in paths}


def test_every_record_is_one_click_away(folder):
    found = pages(folder)
    with StudyStore(folder / "a.db") as store:
        keys = {record["key"] for record in store.records()}
    index = found[folder / "index.html"]
    linked = set()
    for link in index.links:
        path, _, name = link.partition("#")
        if name:
            assert name in found[folder / path].names
            linked.add(name)
    assert linked == keys


def test_the_table_reads_points_as_people_write_them_and_has_no_empty_column(folder):
    text = (folder / "index.html").read_text(encoding="utf-8")
    with StudyStore(folder / "a.db") as store:
        records = store.records()
    points = [cells[1] for cells in pages(folder)[folder / "index.html"].rows if cells]
    assert len(points) == len(records)
    assert all(" = " in point and "{" not in point for point in points)
    for name in ("size", "m"):
        given = any(record[name] is not None for record in records)
        assert (f"<button>{name}</button>" in text) == given


def test_records_are_in_order_and_equal_settings_are_said_once(folder):
    page = (folder / "index.html").read_text(encoding="utf-8")
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall("<tr>(.*?)</tr>", page)]
    methods = ["complex-step", "reverse"]
    product = [(size, method) for size in ("3", "20") for method in methods]
    found = [(row[2], row[3]) for row in rows if row and ">product<" in row[0]]
    assert found == product
    heads = re.findall(r"<button>(\w+)</button>", page)
    assert not {"target", "version", "order"} & set(heads)
    assert "In all records: target auto, version this, order 1." in page

    with StudyStore(folder / "a.db") as store:
        records = [dict(record) for record in store.records()]
    records[0]["target"] = "native"
    (page,) = (text for path, text in site(records).items() if path.name == "index.html")
    assert b"<button>target</button>" in page
    assert b"In all records: version this, order 1." in page


def test_the_command_on_a_page_repeats_its_records(folder, monkeypatch, tmp_path, capsys):
    from difflab.cli import main

    monkeypatch.chdir(tmp_path)
    with StudyStore(folder / "a.db") as store:
        records = store.records()
    for path, page in pages(folder).items():
        if path.name == "index.html":
            continue
        (command,) = (block for block in page.blocks if block.startswith("difflab compare"))
        _, name, *arguments = shlex.split(command)
        with pytest.raises(SystemExit):
            main([name, "--no-timing", "--format", "json", *arguments])
        repeated = json.loads(capsys.readouterr().out)
        for row in repeated["methods"]:
            (record,) = (
                r for r in records if r["key"] in page.names and r["method"] == row["name"]
            )
            assert (row["verdict"], row["status"]) == (record["verdict"], record["status"])


def test_text_is_escaped_and_nothing_is_loaded(folder):
    for path, page in pages(folder).items():
        scripts = [tag for tag, _ in page.tags if tag == "script"]
        assert len(scripts) == (path.name == "index.html")
        assert "b" not in [tag for tag, _ in page.tags]
        for _, attributes in page.tags:
            for name in ("src", "href"):
                assert not attributes.get(name, "").startswith(("http", "//", "javascript"))
            assert not [name for name in attributes if name.startswith("on")]
        text = path.read_text(encoding="utf-8")
        assert "default-src 'none'" in unescape(text)
        assert "<script>alert" not in text


def test_pictures_show_each_method_and_family(folder):
    text = (folder / "index.html").read_text(encoding="utf-8")
    pictures = re.findall("<svg.*?</svg>", text, re.DOTALL)
    assert len(pictures) == 2
    for method in ("forward", "finite-central", "reverse", "complex-step"):
        assert method in pictures[0]
    assert pictures[1].count("<circle") == 4


# A document of as many rows as the script needs: enough to run it without a browser.
DOCUMENT = """
const cells = (row) => row.map(([text, value]) => ({textContent: text,
  dataset: value === undefined ? {} : {value}}));
const rows = ROWS.map((row) => ({cells: cells(row), textContent: row.map((c) => c[0]).join(" ")}));
const heads = ROWS[0].map(() => ({ariaSort: null, removeAttribute() { this.ariaSort = null; },
  button: {addEventListener(_, call) { this.click = call; }},
  querySelector() { return this.button; }}));
let order = rows;
const table = {tHead: {rows: [{cells: heads}]},
  tBodies: [{rows, append(...list) { order = list; }}]};
const input = {value: "", addEventListener(_, call) { this.type = call; }};
const note = {};
const found = {"#filter": input, "#shown": note};
globalThis.document = {querySelector: (name) => found[name] ?? table};
globalThis.location = {hash: HASH};
globalThis.history = {replaceState(a, b, hash) { location.hash = hash; }};
globalThis.window = {addEventListener() {}};
"""


def executed(rows, hash_, actions):
    """Return the first cells in the order, and what the note says, after some actions."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    start = DOCUMENT.replace("ROWS", json.dumps(rows)).replace("HASH", json.dumps(hash_))
    end = "console.log(JSON.stringify([order.filter((r) => !r.hidden).map((r) => "
    end += "r.cells[0].textContent), note.textContent, location.hash]));"
    done = subprocess.run(
        [node, "-e", f"{start}\n(() => {{{SCRIPT}\n}})();\n{actions}\n{end}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


ROWS = [
    [["b", None], ["2 ns", "2e-9"]],
    [["A", None], ["1.5 ms", "0.0015"]],
    [["c", None], ["", ""]],
    [["d", None], ["inf", "Infinity"]],
]
ROWS = [[[text] if value is None else [text, value] for text, value in row] for row in ROWS]


@pytest.mark.parametrize(
    ("actions", "order", "note"),
    [
        ("", "bAcd", "4 of 4"),
        ("heads[0].button.click();", "Abcd", "4 of 4"),
        ("heads[1].button.click();", "bAdc", "4 of 4"),
        ("heads[1].button.click(); heads[1].button.click();", "dAbc", "4 of 4"),
        ("input.value = 'MS'; input.type();", "A", "1 of 4"),
    ],
)
def test_tables_sort_by_value_and_absent_values_are_last(actions, order, note):
    assert executed(ROWS, "", actions)[:2] == [[*order], note]


def test_the_address_keeps_the_order():
    hash_ = executed(ROWS, "", "heads[1].button.click(); heads[1].button.click();")[2]
    assert executed(ROWS, hash_, "")[0] == [*"dAbc"]


def test_a_browser_sorts_the_table(folder):
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("Chromium is not installed")
    seen = {}
    for order in ("asc", "desc"):
        done = subprocess.run(
            [
                browser,
                *("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000"),
                *("--dump-dom", f"{(folder / 'index.html').as_uri()}#sort=3,{order}"),
            ],
            capture_output=True,
            text=True,
            timeout=600,
            check=True,
        )
        seen[order] = [row[3] for row in Page(done.stdout).rows if row]
    assert seen["asc"] == sorted(seen["asc"])
    assert seen["desc"] == sorted(seen["asc"], reverse=True)
    assert len(seen["asc"]) == 6


def test_legends_stay_inside_the_picture() -> None:
    names = {f"method-{k}-of-many": [(1.0, 1e-3), (8.0, 2e-3)] for k in range(8)}
    text = times(names, "family")
    width, height = map(float, re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text)[0])
    legend = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="start">method', text)
    assert len(legend) == 8
    assert all(float(x) + 7.2 * 16 <= width and float(y) <= height for x, y in legend)


def test_a_comparison_over_a_domain_has_the_table_of_its_own_reports(tmp_path):
    study = """
[[grid]]
formulas = ["sqrt(x)"]
over = {x = [-1, 1]}
points = 16
methods = ["forward", "finite-central"]
"""
    (tmp_path / "a.toml").write_text(study, encoding="utf-8")
    with StudyStore(tmp_path / "a.db", new=True) as store:
        run(store, plan(read(tmp_path / "a.toml")))
        written = site(store.records())
    (page,) = (text.decode() for path, text in written.items() if path.parent.name == "records")
    rows = {cells[0]: cells for cells in Page(page).rows if cells}
    assert set(rows) == {"forward", "finite-central"}
    assert re.search(r"<th[^>]*>agree</th>.*<th[^>]*>disagree</th>.*<th[^>]*>ULP 50 %</th>", page)
    assert all(" %" in cell for cell in rows["forward"][1:2])
    notes = [unescape(note) for note in re.findall(r'<p class="note">(.*?)</p>', page)]
    assert [note.partition(":")[0] for note in notes] == [*rows]
    assert all("ULP at x = " in note for note in notes)

"""Cases of studies over domains, of Python code and of families by two sizes."""

import json
import sqlite3

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError
from difflab.lab.diff.difference import Kind, difference
from difflab.lab.diff.sides import load
from difflab.lab.problems.sized import python_family
from difflab.lab.record import from_dict
from difflab.lab.store import unpacked_json
from difflab.lab.study.cases import COLUMNS, StudyCase, StudyStore
from difflab.lab.study.run import plan, run
from difflab.lab.study.study import read

DOMAIN = """
[[grid]]
formulas = ["sqrt(x)*y"]
over = [{x = [0.01, 4]}, {x = [1, 4]}]
scale = {x = "log"}
points = 32
at = {y = 2}
seeds = [0, 1]
methods = ["forward", "finite-forward"]
targets = ["python", "numpy"]
"""


def written(tmp_path, text, name="study.toml"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def stored(tmp_path, text, name="a.db", **code):
    with StudyStore(tmp_path / name, new=True) as store:
        run(store, plan(read(written(tmp_path, text), **code)))
        return store.records()


def test_domains_seeds_and_targets_are_a_grid(tmp_path):
    study = read(written(tmp_path, DOMAIN))
    assert len(study.cases) == 2 * 2 * 2
    assert {(case.domain.seed, case.target) for case in study.cases} == {
        (seed, target) for seed in (0, 1) for target in ("python", "numpy")
    }
    assert len({case.identity for case in study.cases}) == 8
    assert {case.repeats for case in study.cases} == {0}
    assert study.cases[0].point == {"y": 2.0}
    assert study.cases[0].label == "sqrt(x)*y, over x=0.01:4, python"


def test_a_case_at_a_point_has_the_identity_of_earlier_versions():
    case = StudyCase("x^2", {"x": 3.0}, ("reverse",))
    assert (case.identity, case.key) == ("151d543354b910ae31e9", "8c4dd8aff656018d8ee4")


def test_the_records_of_a_domain_are_what_compare_finds(tmp_path):
    text = DOMAIN.replace(", {x = [1, 4]}", "").replace("[0, 1]", "3").replace(', "numpy"', "")
    records = {record["method"]: record for record in stored(tmp_path, text)}
    found = dl.compare(
        "sqrt(x)*y",
        at={"y": 2.0},
        over={"x": (0.01, 4)},
        points=32,
        scale={"x": "log"},
        methods=["forward", "finite-forward"],
        seed=3,
        target="python",
    )
    for row in found.methods:
        record = records[row.name]
        assert (record["status"], record["verdict"]) == ("ok", row.worst.verdict)
        assert record["max_ulp_error"] == row.worst.max_ulp_error
        assert (record["points"], record["call_seconds"], record["blocks"]) == (32, None, "[]")
        (kept,) = unpacked_json(record["comparison"])["methods"]
        assert kept["shares"] == row.shares
        x = kept["worst"]["point"]["x"]
        assert 0.01 <= x <= 4
        # The error of the worst point, by algebra: d/dx 2 sqrt(x) = 1/sqrt(x).
        ulp = np.spacing(1 / np.sqrt(x))
        assert (
            abs(kept["worst"]["max_abs_error"] / ulp - record["max_ulp_error"])
            <= 1 + 0.5 * (record["max_ulp_error"])
        )
    assert json.loads(records["forward"]["over"])["over"] == {"x": [0.01, 4]}


def test_a_method_that_never_answers_is_no_success(tmp_path):
    text = (
        '[[grid]]\nformulas = "abs(x)"\nover = {x = [1, 2]}\npoints = 8\nmethods = "complex-step"\n'
    )
    (record,) = stored(tmp_path, text)
    assert (record["status"], record["verdict"]) == ("unsupported", None)
    assert record["message"]


def test_a_domain_that_became_worse_is_found(tmp_path):
    text = '[[grid]]\nformulas = "x^2"\nover = {x = [1, 2]}\npoints = 8\nmethods = "reverse"\n'
    stored(tmp_path, text)
    with StudyStore(tmp_path / "a.db") as store:
        store.copy(tmp_path / "b.db")
    assert not difference(load(str(tmp_path / "a.db")), load(str(tmp_path / "b.db"))).changes
    with sqlite3.connect(tmp_path / "b.db") as opened:
        (comparison,) = opened.execute("SELECT comparison FROM records").fetchone()
        wrong = json.loads(comparison)
        wrong["methods"][0]["worst"]["verdict"] = "disagree"
        opened.execute("UPDATE records SET comparison = ?", (json.dumps(wrong),))
    opened.close()
    (change,) = difference(load(str(tmp_path / "a.db")), load(str(tmp_path / "b.db"))).changes
    assert (change.kind, change.label) == (Kind.WRONG, "x^2, over x=1:2")


class Code:
    """Python code as the command would import it."""

    def function(self, name, point, domains=()):
        if name != "model:loss":
            return None
        return dl.trace(lambda w: np.sum((w - 1) ** 2), np.asarray(point["w"], dtype=float))

    def family(self, name):
        if name != "model:layer":
            return None
        return python_family(
            name, lambda n, m: (lambda W, x: W @ x, (np.ones((m, n)), np.ones(n))), ["n", "m"]
        )


def test_python_code_is_traced_at_each_point(tmp_path):
    text = '[[grid]]\nformulas = "model:loss"\nat = [{w = [1, 3]}, {w = 5}]\n'
    text += 'methods = "reverse"\ntiming = false\n'
    records = stored(tmp_path, text, code=Code())
    found = {
        record["text"]: from_dict(unpacked_json(record["comparison"])).methods[0].jacobian.tolist()
        for record in records
    }
    assert sorted(found.values()) == [[[0.0, 4.0]], [[8.0]]]
    assert {record["formula"] for record in records} == {"model:loss"}


def test_families_have_two_sizes(tmp_path):
    text = '[[grid]]\nfamilies = ["model:layer", "x: [2*n]; sum(x)*m", "x: [{n}]; x"]\n'
    text += 'n = [1, 2]\nm = [3, 4]\nmethods = "forward"\ntiming = false\n'
    cases = read(written(tmp_path, text), Code()).cases
    assert [(case.size, case.m) for case in cases] == [
        *[(1, 3), (1, 4), (2, 3), (2, 4)] * 2,
        *[(1, None), (2, None)],
    ]
    assert cases[3].label == "model:layer 2×4"
    assert cases[3].text.splitlines() == ["W: [4, 2]", "x: [2]", "W @ x"]
    assert [case.text for case in cases[4:8]] == [
        f"x: [{2 * n}]\nsum(x)*{m}".replace("\n", "; ") for n in (1, 2) for m in (3, 4)
    ]
    records = stored(tmp_path, text, code=Code())
    assert {(record["size"], record["m"]) for record in records} == {
        (case.size, case.m) for case in cases
    }


@pytest.mark.parametrize(
    ("lines", "at", "says"),
    [
        (["over = {x = [1, 2]}", "timing = true"], 4, "grid[0].timing: a comparison over"),
        (["over = {x = [1, 2]}", "repeats = 2"], 4, "grid[0].repeats: a comparison over"),
        (["over = {x = [1]}"], 3, "grid[0].over"),
        (["over = {z = [1, 2]}"], 3, "there is no input 'z'"),
        (["over = {x = [-1, 2]}", 'scale = {x = "log"}'], 3, "grid[0].over"),
        (["points = 4"], 3, "grid[0].points: points belong to a domain"),
        (["over = {x = [1, 2]}", "points = 0"], 4, "points are from 1"),
        (["n = 2"], 3, "n need families, which the grid lacks"),
        (['families = "x: [n]; W: [m, n]; W@x"', "n = 2"], 3, "has a size m"),
        (['families = "x: [n/2]; x"', "n = 3"], 3, "n/2 is 1.5 for n = 3"),
        (['families = "product"', "n = 2", "sizes = 2"], 4, "two names of the same"),
    ],
)
def test_errors_name_the_key_and_its_line(tmp_path, lines, at, says):
    text = "\n".join(["[[grid]]", 'formulas = "x^2"', *lines, 'methods = "reverse"\n'])
    with pytest.raises(InputError) as error:
        read(written(tmp_path, text))
    assert says in error.value.message
    assert f"line {at}: " in error.value.render()


def test_a_store_of_the_first_version_is_upgraded(tmp_path):
    path = tmp_path / "old.db"
    names = [name for name in COLUMNS if name not in ("m", "over", "points")]
    with sqlite3.connect(path) as old:
        columns = ", ".join(f'"{name}"' for name in names)
        old.execute(f'CREATE TABLE records ({columns}, PRIMARY KEY ("key")) WITHOUT ROWID')
        old.execute("CREATE TABLE claims (work TEXT PRIMARY KEY, owner TEXT) WITHOUT ROWID")
        old.execute('INSERT INTO records ("key", "text") VALUES (?, ?)', ("k", "x^2"))
        old.execute(f"PRAGMA application_id={0x64664C62}")
        old.execute("PRAGMA user_version=1")
    old.close()
    with StudyStore(path) as store:
        (record,) = store.records()
    assert (record["text"], record["m"], record["over"]) == ("x^2", None, None)
    text = '[[grid]]\nformulas = "x^2"\nat = {x = 1}\nmethods = "reverse"\ntiming = false\n'
    assert len(stored(tmp_path, text, "old.db")) == 2

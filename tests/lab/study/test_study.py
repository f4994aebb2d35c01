"""The TOML of a study, its cases, and what running it records."""

import json
import math

import pytest

from difflab.errors import InputError
from difflab.lab.record import from_dict
from difflab.lab.store import unpacked_json
from difflab.lab.study.cases import StudyStore
from difflab.lab.study.judging import keys, sources
from difflab.lab.study.run import plan, run
from difflab.lab.study.study import read

SEED = """
name = "seed"
[[grid]]
formulas = ["ln(x1) + x1*x2 - sin(x2)", "abs(x1)*x2"]
at = [{x1 = 2, x2 = 5}]
methods = ["forward", "finite-central"]
timing = false

[[grid]]
families = ["product", "x: [{n}]; sum(sin(x))"]
sizes = [2, 3]
methods = ["reverse"]
timing = false
targets = ["python", "numpy"]
"""


def written(tmp_path, text):
    path = tmp_path / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_grid_is_the_product_of_its_lists(tmp_path):
    study = read(written(tmp_path, SEED))
    assert study.name == "seed"
    assert len(study.cases) == 2 + 2 * 2 * 2
    assert [case.size for case in study.cases if case.family == "product"] == [2, 2, 3, 3]
    assert {case.target for case in study.cases} == {"auto", "python", "numpy"}
    assert study.cases[0].point == {"x1": 2.0, "x2": 5.0}
    assert study.cases[-1].text == "x: [3]; sum(sin(x))"


def test_the_same_case_in_two_grids_is_one_with_the_methods_of_both(tmp_path):
    one = '[[grid]]\nformulas = "x^2"\nat = {x = 3}\nmethods = ["forward"]\n'
    study = read(written(tmp_path, one + one.replace("forward", "reverse") + one))
    assert [case.methods for case in study.cases] == [("forward", "reverse")]


def test_a_problem_of_the_library_is_compared_at_its_start(tmp_path):
    text = '[[grid]]\nformulas = "problem:mgh/rosenbrock"\nmethods = ["forward"]\n'
    (case,) = read(written(tmp_path, text)).cases
    assert case.formula == "problem:mgh/rosenbrock"
    assert case.point == {"x1": -1.2, "x2": 1.0}


@pytest.mark.parametrize(
    ("change", "line", "says"),
    [
        (("[[grid]]", "[[grids]]"), 3, "grids: unknown key"),
        (("sizes = [2, 3]", "sizes = []"), 11, "grid[1].sizes: the list is empty"),
        (("sizes = [2, 3]", "sizes = [2, 'a']"), 11, "grid[1].sizes: an integer is needed"),
        (("sizes = [2, 3]", "sizes = [\n  0\n]"), 11, "a size is at least 1"),
        (("sizes = [2, 3]", ""), 10, "grid[1].families: families need sizes"),
        (("product", "products"), 10, "there is no family 'products'"),
        (("numpy", "numpi"), 14, "there is no target 'numpi'"),
        (("reverse", "revers"), 12, "there is no method 'revers'"),
        (("x2 = 5", "x3 = 5"), 5, "grid[0].at"),
        (("x1 = 2", "x1 = -2"), 5, "grid[0].at"),
        (("abs(x1)", "abs((x1"), 4, "grid[0].formulas"),
        (("abs(x1)*x2", "problem:mgh/rosenbroc"), 4, "there is no problem 'mgh/rosenbroc'"),
        (("at = [{x1 = 2, x2 = 5}]", "over = {x1 = [0, 1]}"), 5, "grid[0].over"),
        (("timing = false", "timing = 1"), 7, "grid[0].timing: true or false is needed"),
        (("timing = false", "timeout = -1"), 7, "grid[0].timeout"),
        (("timing = false", "repeats = 0"), 7, "grid[0].repeats"),
        (("timing = false", "versions = ['old']"), 7, "grid[0].versions"),
        (('name = "seed"', "name = 3"), 2, "name: text is needed"),
        (('name = "seed"', 'versions = {old = "no/python"}'), 2, "versions.old"),
    ],
)
def test_errors_name_the_key_and_its_line(tmp_path, change, line, says):
    text = SEED.replace(*change)
    assert text != SEED
    with pytest.raises(InputError) as error:
        read(written(tmp_path, text))
    assert says in error.value.message
    assert f"line {line}: " in error.value.render()


def test_text_that_looks_like_a_key_is_none(tmp_path):
    text = 'name = """\nsizes = 1\n[[grid]]\n"""\n[[grid]]\nformulas = "x"\nsize = 1\n'
    with pytest.raises(InputError) as error:
        read(written(tmp_path, text))
    assert "line 7: size = 1" in error.value.render()


@pytest.mark.parametrize("text", ["a = \nb = 1\n", "a = 1\na = 2\n", "\x00\n"])
def test_a_file_that_is_not_toml_is_refused_with_its_line(tmp_path, text):
    with pytest.raises(InputError, match=r"is not TOML: .*line"):
        read(written(tmp_path, text))


def test_records_have_the_derivatives_that_algebra_gives(tmp_path):
    planned = plan(read(written(tmp_path, SEED)))
    seen = []
    with StudyStore(tmp_path / "a.db", new=True) as store:
        run(store, planned, lambda *progress: seen.append(progress))
        records = store.records()
        run(store, planned)
        again = store.records()
    assert again == records
    assert len(records) == len(planned.keys) == 12
    assert [done for done, _, _ in seen] == [0, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    first = next(r for r in records if r["text"].startswith("ln") and r["method"] == "forward")
    jacobian = from_dict(unpacked_json(first["comparison"])).methods[0].jacobian
    assert jacobian[0].tolist() == pytest.approx([5.5, 2 - math.cos(5)], rel=1e-15)
    assert first["verdict"] == "agree"
    assert json.loads(first["point"]) == {"x1": 2.0, "x2": 5.0}
    sines = [r for r in records if r["family"].startswith("x: ") and r["size"] == 3]
    assert {r["target"]: r["status"] for r in sines} == {"python": "unsupported", "numpy": "ok"}
    for record in (record for record in sines if record["status"] == "ok"):
        row = from_dict(unpacked_json(record["comparison"]))
        x = row.point["x"]
        assert row.methods[0].jacobian[0].tolist() == pytest.approx([*map(math.cos, x)], rel=1e-15)


def test_times_are_blocks_of_pairs_with_the_yardstick(tmp_path):
    text = '[[grid]]\nformulas = "x^2"\nat = {x = 3}\nmethods = ["reverse"]\nrepeats = 2\n'
    with StudyStore(tmp_path / "a.db", new=True) as store:
        run(store, plan(read(written(tmp_path, text))))
        (record,) = store.records()
    blocks = json.loads(record["blocks"])
    assert len(blocks) == 2
    for call, yard in blocks:
        assert len(call) == len(yard) > 0
    assert record["call_seconds"] == min(s for call, _ in blocks for s in call)
    assert from_dict(unpacked_json(record["comparison"])).methods[0].samples


def test_a_comparison_that_fails_is_a_record(tmp_path, monkeypatch):
    def full(*_, **__):
        raise MemoryError("no room")

    monkeypatch.setattr("difflab.lab.study.judging.compare", full)
    text = '[[grid]]\nformulas = "x^2"\nat = {x = 3}\nmethods = ["reverse"]\n'
    with StudyStore(tmp_path / "a.db", new=True) as store:
        run(store, plan(read(written(tmp_path, text))))
        (record,) = store.records()
    assert (record["status"], record["verdict"]) == ("failed", None)
    assert "no room" in record["message"]


@pytest.mark.parametrize(
    "column", ["code", "difflab", "python", "cpu", "packages", "numpy", "llvmlite"]
)
def test_other_code_versions_and_processors_make_other_keys(tmp_path, column):
    case = read(written(tmp_path, SEED)).cases[0]
    known = sources([case])
    changed = {name: {**found, column: "other"} for name, found in known.items()}
    assert set(keys(case, known).values()).isdisjoint(keys(case, changed).values())

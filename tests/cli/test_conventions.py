"""``difflab conventions``: its formats, its selections and what it refuses."""

import json


def test_difflab_alone_is_shown_as_a_table(difflab):
    result = difflab("conventions", "--peers", "pytensr")
    assert result.code == 2
    assert "there is no peer 'pytensr'" in result.err
    assert "did you mean pytensor?" in result.err


def test_a_family_is_selected(difflab, monkeypatch):
    monkeypatch.setattr("difflab.core.optional.installed", lambda _: False)
    monkeypatch.setattr("difflab.core.optional._distributed", lambda _: False)
    result = difflab("conventions", "--family", "ties")
    assert result.code == 0
    assert result.out.startswith("difflab ")
    assert "max(x, y) at x = 0, y = 0\nvalue  first" in result.out
    assert "abs(x)" not in result.out
    assert "left out: jax: jax is not installed; add it with: pip install" in result.out
    assert all(len(line) <= 80 for line in result.out.splitlines())
    unknown = difflab("conventions", "--family", "tie")
    assert (unknown.code, "there is no family 'tie'" in unknown.err) == (2, True)


def test_formats(difflab, monkeypatch, tmp_path):
    monkeypatch.setattr("difflab.core.optional.installed", lambda _: False)
    monkeypatch.setattr("difflab.core.optional._distributed", lambda _: False)
    record = json.loads(difflab("conventions", "--format", "json", "--family", "steps").out)
    assert record["schema"] == "difflab.conventions/1"
    sign = next(each for each in record["results"] if each["formula"] == "sign(x)")
    assert (sign["at"], sign["value"], sign["first"]) == ([0.0], [0.0], [0.0])
    text = difflab("conventions", "--format", "csv", "--family", "steps").out
    assert text.startswith("formula,at,package,version,own,code,value,first,second\n")
    page = tmp_path / "page.md"
    assert difflab("conventions", "-o", str(page), "--family", "steps").code == 0
    assert "| sign\\(x\\) at x = 0 | 0 | 0 | 0 | difflab |" in page.read_text("utf-8")

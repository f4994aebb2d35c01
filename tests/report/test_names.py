"""Names that a program gives to its values, in everything that shows them."""

import pickle
import pydoc

import pytest

import difflab as dl
from difflab.drawing import WRITERS, diagram
from difflab.language.printers import c, python
from difflab.report.terminal import clean
from difflab.report.trace.text import table
from difflab.report.trace.trace import trace

PROGRAM = "# two steps\nh = ln(x1)  # the first\nu1 = h*x2; v1 = u1 + h; v1*sin(u1)"


@pytest.fixture
def function():
    return dl.parse(PROGRAM)


def test_a_trace_has_them(function):
    steps = trace(function, {"x1": 2.0, "x2": 5.0})
    assert [step.name for step in steps.primal] == ["v-1", "v0", "h", "u1", "v1", "v2", "v3"]
    assert [step.formula for step in steps.primal][2:5] == ["ln v₋₁", "h × v₀", "u1 + h"]
    shown = table(steps)
    assert "h̄ = h̄ + ū1 ∂u1/∂h" in shown
    assert "ḣ = v̇₋₁ / v₋₁" in shown
    assert dict(steps.gradient)["x2"] == pytest.approx(
        float(dl.gradient(function)(2.0, 5.0)[1]), rel=1e-15
    )


def test_generated_names_avoid_them():
    steps = trace(dl.parse("v2 = x*y; sin(v2) + 1"), {"x": 1.0, "y": 2.0})
    assert [step.name for step in steps.primal] == ["v-1", "v0", "v2", "v1", "v3"]
    clash = trace(dl.parse("v0 = x*y; sin(v0)"), {"x": 1.0, "y": 2.0})
    assert [step.name for step in clash.primal] == ["v-1", "v0", "v1", "v2"]


def test_an_output_without_a_name_is_not_called_as_a_variable_is():
    steps = trace(dl.parse("y = x*x; sin(y)"), {"x": 1.0})
    assert [name for name, _ in steps.outputs] == ["f"]
    assert [step.name for step in steps.primal] == ["v0", "y", "v1"]


def test_pictures_have_them(function):
    captions = [box.caption for box in diagram(function).boxes]
    assert {"h", "u1"} <= set(captions)
    assert "gradient" in WRITERS["svg"](diagram(dl.gradient(function)))
    assert "h" in [box.caption for box in diagram(dl.gradient(function)).boxes]


def test_code_has_them(function):
    assert "    const double u1 = h * x2;\n" in c(function)
    assert "    u1 = h * x2\n" in python(function)
    assert "u1 = h * x2" in python(dl.gradient(function))


def test_a_name_that_an_input_has_is_not_used_for_a_value():
    """Inlined into another function, a program's variable may meet an input of its name."""
    inner = dl.parse("h = a*a; h*sin(h)")
    outer = dl.trace(lambda h: inner(h) + inner(2 * h), 1.5)
    source = python(outer)
    scope: dict[str, object] = {}
    exec(source, scope)
    assert scope["f"](1.5) == pytest.approx(float(outer(1.5)), rel=1e-15)


def test_passes_keep_them(function):
    from difflab.report.passes import EXACT, run

    labels = set(function.graph.labels.values())
    assert labels == {"h", "u1", "v1"}
    for step in run(function, EXACT[:-1]):
        assert set(step.after.graph.labels.values()) == labels
    assert set(dl.stabilise(function).function.graph.labels.values()) == labels
    assert set(pickle.loads(pickle.dumps(function)).graph.labels.values()) == labels


def test_comments_do_not_swallow_what_follows_them(function):
    shown = "h = ln(x1); u1 = h*x2; v1 = u1 + h; v1*sin(u1)"
    assert clean(PROGRAM) == shown
    assert diagram(function).title == shown
    assert shown in table(trace(function, {"x1": 2.0, "x2": 5.0}))


def test_stabilised_functions_and_comparisons_are_pickled():
    found = dl.stabilise("log(exp(a) + exp(b)) - 1/(1 + exp(-a))")
    again = pickle.loads(pickle.dumps(found))
    assert repr(again) == repr(found)
    assert again.rewrites == found.rewrites
    both = dl.compare("1 - cos(x)", {"x": 1e-9}, timing=False, stabilise=True, methods=["forward"])
    assert repr(pickle.loads(pickle.dumps(both))) == repr(both)


def test_help_begins_with_what_there_is():
    page = pydoc.plain(pydoc.render_doc(dl))
    head = page[: page.index("PACKAGE CONTENTS")]
    words = set(head.replace(",", " ").replace(".", " ").split())
    assert {name for name in dl.__all__ if name != "__version__"} <= words
    assert len(head.splitlines()) < 60


@pytest.mark.filterwarnings("ignore")
def test_pictures_need_no_latex(monkeypatch):
    """Whoever sets text.usetex for other pictures may have no LaTeX here."""
    import matplotlib as mpl

    monkeypatch.setenv("PATH", "")
    result = dl.compare("x^2", {"x": 2.0}, methods=["forward"], timing=False)
    from difflab.report.comparison.plots import picture

    with mpl.rc_context({"text.usetex": True}):
        assert picture(result, "svg").startswith(b"<?xml")
        assert WRITERS["png"](diagram(dl.parse("x^2"))).startswith(b"\x89PNG")

"""The methods of a function show what the commands write."""

import difflab as dl

SEED = "ln(x1) + x1*x2 - sin(x2)"
AT = {"x1": 2, "x2": 5}


def test_the_picture_is_that_of_the_command(difflab, tmp_path):
    function = dl.parse(SEED)
    assert difflab("graph", SEED, "--format", "dot").out == function.draw().dot()
    assert difflab("graph", SEED, "--format", "mermaid").out == function.draw().mermaid()
    difflab("graph", SEED, "--at", "x1=2,x2=5", "--values", "-o", "graph.svg")
    written = (tmp_path / "graph.svg").read_text(encoding="utf-8")
    assert written == function.draw(AT, values=True).svg()


def test_the_trace_is_that_of_the_command(difflab):
    trace = dl.parse(SEED).trace(AT)
    assert dict(trace.gradient) == {"x1": 5.5, "x2": 1.7163378145367738}
    assert difflab("trace", SEED, "--at", "x1=2,x2=5").out == trace.table()
    assert difflab("trace", SEED, "--at", "x1=2,x2=5", "--format", "md").out == trace.markdown()


def test_the_passes_are_those_of_the_command(difflab):
    program = "x^1 + 2*3 + y*x + x*y"
    assert difflab("graph", program, "--passes").out == dl.parse(program).passes().table()

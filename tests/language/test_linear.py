"""Work grows with the text and with nothing else: calls are counted, not seconds."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from difflab.graph.function import Function
from difflab.language import parse
from difflab.language.printers import c, javascript, latex, python, text
from tests.support.rows import for_each

PROGRAMS: dict[str, Callable[[int], str]] = {
    "terms": lambda n: "+".join(f"sin(x{i})*{i}.5" for i in range(n)),
    "powers": lambda n: "^".join(["x"] * n),
    "minuses": lambda n: "-" * n + "x",
    "parentheses": lambda n: "(" * n + "x" + ")" * n,
    "calls": lambda n: "sin(" * n + "x" + ")" * n,
    "lines": lambda n: "a0 = x\n" + "\n".join(f"a{i + 1} = a{i}*a{i} + 1" for i in range(n)),
    "outputs": lambda n: "[" + ", ".join(f"x{i} + 1" for i in range(n)) + "]",
    "declarations": lambda n: "\n".join(f"x{i}: [3]" for i in range(n)) + "\nx0[1]",
    "elements": lambda n: f"x: [{n}]\n" + "+".join(f"x[{i}]^2*x[{i // 2}]" for i in range(n)),
    "lists": lambda n: (
        "t = [" + ", ".join(f"x{i}" for i in range(n)) + "]\n"
        "sum(t) + " + "+".join(f"sin(t[{i}])" for i in range(n))
    ),
    "blanks": lambda n: "x" + " " * n + "+" + "\n" * n + "1" + " " * n,
    "comments": lambda n: "# c\n" * n + "x",
}


def calls(work: Callable[[], object]) -> int:
    """Count the calls of Python and of C functions that `work` makes."""
    count = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    previous = sys.getprofile()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(previous)
    return count


def assert_linear(work: Callable[[int], Callable[[], object]]) -> None:
    work(200)()  # what the first call of a process caches is not counted
    small, middle, large = (calls(work(n)) for n in (200, 400, 800))
    assert large - middle <= 2.1 * (middle - small) + 50


@for_each("program", PROGRAMS.values(), ids=PROGRAMS)
def test_parsing_is_linear(program: Callable[[int], str]) -> None:
    assert_linear(lambda n: lambda: parse(program(n)))


@pytest.mark.parametrize("printer", [text, latex, python, c, javascript])
@for_each("program", PROGRAMS.values(), ids=PROGRAMS)
def test_printing_is_linear(
    program: Callable[[int], str], printer: Callable[[Function], str]
) -> None:
    def work(n: int) -> Callable[[], object]:
        function = parse(program(n))
        return lambda: printer(function)

    assert_linear(work)


@pytest.mark.parametrize("printer", [text, latex, python, c, javascript])
def test_a_shared_graph_is_printed_once(printer: Callable[[Function], str]) -> None:
    """Forty squarings are 2^40 factors as a tree and forty lines as a graph."""
    program = "a0 = x + 1\n" + "\n".join(f"a{i + 1} = a{i}*a{i}" for i in range(40))
    assert len(printer(parse(program))) < 3000


def test_nothing_recurses() -> None:
    programs = [program(3000) for program in PROGRAMS.values()]
    for printer in (text, latex, python, c, javascript):
        printer(parse("sin(x) + 1"))
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 60)
    try:
        for program in programs:
            function = parse(program)
            for printer in (text, latex, python, c, javascript):
                printer(function)
    finally:
        sys.setrecursionlimit(limit)

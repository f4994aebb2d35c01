"""No test draws from a generator that another test draws from."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.draws import generator

TESTS = Path(__file__).parents[1]
MAKERS = ("default_rng", "RandomState", "Random")
# Their functions name a generator of the module on purpose: that is an error in a trace.
REFUSED = {"arrays/test_random.py", "graph/test_draws.py"}


def shared(source: str) -> set[str]:
    """Return the generators of a module that its functions use."""
    tree = ast.parse(source)
    made = set(generators(tree))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    bodies = [part for part in ast.walk(tree) if isinstance(part, functions)]
    return {
        part.id
        for body in bodies
        for part in ast.walk(body)
        if isinstance(part, ast.Name) and part.id in made
    }


def generators(tree: ast.Module) -> Iterator[str]:
    """Yield the names of a module to which generators are assigned."""
    for statement in tree.body:
        made = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        if isinstance(made, ast.Call) and ast.unparse(made.func).rpartition(".")[2] in MAKERS:
            for part in ast.walk(statement):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    yield part.id


def test_no_function_draws_from_a_generator_of_its_module() -> None:
    found = {
        path.relative_to(TESTS).as_posix(): names
        for path in sorted(TESTS.rglob("*.py"))
        if (names := shared(path.read_text("utf-8")))
    }
    assert found.keys() == REFUSED, "take the fixture `rng` instead"


@pytest.mark.parametrize(
    "use", ["def f():\n    return RNG.normal()", "f = lambda: RNG.normal()", "X = [f(RNG)]"]
)
def test_a_function_that_draws_is_found(use: str) -> None:
    source = f"import numpy as np\nRNG = np.random.default_rng(3)\n{use}\n"
    assert shared(source) == (set() if use.startswith("X") else {"RNG"})


def test_the_fixture_depends_on_the_name_only(
    rng: np.random.Generator, request: pytest.FixtureRequest
) -> None:
    name = "tests/support/test_draws.py::test_the_fixture_depends_on_the_name_only"
    assert request.node.nodeid == name
    assert rng.random() == generator(name).random() != generator(f"{name}[other]").random()

"""Every module can be imported where only the extra ``test`` is installed, or skips itself.

A module needs an optional package at import if it imports it outside of functions, or in a function
that it calls outside of functions. What is optional follows from `pyproject.toml`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

import pytest

from tests.support.documents import ROOT
from tests.support.optional import required_modules

ALLOWED = {*sys.stdlib_module_names, "benchmarks", "difflab", "tests"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
CAUGHT = {"ImportError", "ModuleNotFoundError", "Exception"}


class Imports(ast.NodeVisitor):
    """The packages that a module imports, in order, until it has skipped itself without them."""

    def __init__(self, tree: ast.Module) -> None:
        self.functions = {part.name: part for part in tree.body if isinstance(part, FUNCTIONS)}
        self.entered: set[str] = set()
        self.skipped: set[str] = set()
        self.found: list[tuple[int, str]] = []
        self.visit(tree)

    def need(self, line: int, name: str | None) -> None:
        top = (name or "").partition(".")[0]
        if top not in ALLOWED and top not in self.skipped:
            self.found.append((line, top))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.need(node.lineno, alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.need(node.lineno, node.module)

    def visit_If(self, node: ast.If) -> None:
        # Neither what only type checkers read nor what a program runs is run by an import.
        if ast.unparse(node.test) in ("TYPE_CHECKING", "__name__ == '__main__'"):
            node.body = []
        self.generic_visit(node)

    def visit_Try(self, node: ast.Try) -> None:
        caught = {
            part.id
            for handler in node.handlers
            for part in ast.walk(handler.type or ast.Name("Exception"))
            if isinstance(part, ast.Name)
        }
        if caught & CAUGHT:
            node.body = []
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = ast.unparse(node.func).rpartition(".")[2]
        first = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
        if name == "importorskip" and isinstance(first, str):
            self.skipped.add(first.partition(".")[0])
        elif name == "import_module" and isinstance(first, str):
            self.need(node.lineno, first)
        elif name in self.functions and name not in self.entered:
            self.entered.add(name)
            for statement in self.functions[name].body:
                self.visit(statement)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Visit what runs when a function is defined: its decorators and default values."""
        arguments = node.args
        defaults = [*arguments.defaults, *arguments.kw_defaults]
        for part in (*node.decorator_list, *defaults):
            if part is not None:
                self.visit(part)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """A lambda may never be called."""


def imported(source: str) -> Iterator[str]:
    """Yield what a module needs beyond the extra ``test``, with the line."""
    for line, name in Imports(ast.parse(source)).found:
        if name not in required_modules():
            yield f"line {line}: {name}"


@pytest.mark.parametrize("folder", ["benchmarks", "difflab", "tests"])
def test_no_module_needs_an_optional_package(folder: str) -> None:
    found = {
        path.relative_to(ROOT).as_posix(): names
        for path in sorted((ROOT / folder).rglob("*.py"))
        if (names := list(imported(path.read_text("utf-8"))))
    }
    assert not found, "import it in a function, or after pytest.importorskip"


@pytest.mark.parametrize(
    "source",
    [
        "import jax",
        "import numpy, torch.nn",
        "from casadi import SX",
        "if True:\n    import onnx",
        "class A:\n    import onnx",
        "try:\n    import jax\nexcept OSError:\n    pass",
        "try:\n    pass\nexcept ImportError:\n    import jax",
        "import pytest\npytest.importorskip('torch')\nimport jax",
        "import jax\nimport pytest\npytest.importorskip('jax')",
        "from importlib import import_module\njax = import_module('jax.numpy')",
        "def f():\n    import jax\n    return [1]\nCASES = f()",
        "def f():\n    import jax\n    return [1]\n@parametrize(f())\ndef test(): pass",
        "def f():\n    import jax\ndef g():\n    return f()\nCASES = g()",
    ],
)
def test_a_module_that_needs_one_is_found(source: str) -> None:
    assert list(imported(source))


@pytest.mark.parametrize(
    "source",
    [
        "import numpy, matplotlib.pyplot, mpl_toolkits, pytest, hypothesis, llvmlite.ir",
        "import tests.support.cases, difflab, ast",
        "import pytest\njax = pytest.importorskip('jax.numpy')\nimport jax.lax",
        "try:\n    import jax\nexcept ImportError:\n    jax = None",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import jax",
        "if __name__ == '__main__':\n    import jax",
        "def f():\n    import jax",
        "f = lambda: __import__('x')",
    ],
)
def test_a_module_that_needs_none_is_not(source: str) -> None:
    assert not list(imported(source))

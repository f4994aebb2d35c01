"""Commands from functions: the signature gives arguments and options, the docstring their help."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer
from typer.testing import CliRunner

from difflab.cli.documented import add, documented


def draw(
    expression: str,
    /,
    depth: Annotated[int, typer.Option(min=0)] = 1,
    form: str | None = None,
    all_names: bool = False,
) -> None:
    r"""Draw a formula.

    It is drawn once.

    Parameters
    ----------
    expression : EXPR
        The formula, which may be
        long.
    depth : N
        How deep.
    form
        The format.
    all_names
        Every name.

    Examples
    --------
    draw "x^2"
    draw '\frac{x}{y}' --depth 2
    """
    typer.echo(f"{expression} {depth} {form} {all_names}")


def invoked(*words: str) -> tuple[int, str]:
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    add(app, draw)
    done = CliRunner().invoke(app, words, terminal_width=80)
    return done.exit_code, done.output


def test_the_help_is_that_of_the_docstring() -> None:
    _, shown = invoked("--help")
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert "Draw a formula." in lines
    assert "It is drawn once." in lines
    # typer 0.19 shows no help of arguments beside click 8.5.
    (argument,) = (
        inspect.signature(documented(draw)).parameters["expression"].annotation.__metadata__
    )
    assert (argument.metavar, argument.help) == ("EXPR", "The formula, which may be long.")
    assert any(line.startswith("--depth N How deep.") for line in lines)
    assert any(line.startswith("--format") and line.endswith("The format.") for line in lines)
    assert "--all-names Every name." in lines
    assert lines[-2:] == ['draw "x^2"', r"draw '\frac{x}{y}' --depth 2"]
    assert "Parameters" not in shown
    assert "--no-all-names" not in shown


def test_the_function_gets_what_is_given() -> None:
    assert invoked("x", "--depth", "3", "--format", "svg", "--all-names") == (0, "x 3 svg True\n")
    assert invoked("-x^2") == (0, "-x^2 1 None False\n")  # a formula, no option


def test_a_range_of_the_annotation_is_kept() -> None:
    code, shown = invoked("x", "--depth", "-1")
    assert code == 2
    assert "'--depth'" in shown

"""The lists of subcommands: whole sentences at any width, in groups."""

import pytest
from typer.testing import CliRunner

from difflab.cli.app import app


@pytest.mark.parametrize("width", [50, 80, 200])
@pytest.mark.parametrize("words", [[], ["bench"], ["study"]])
def test_no_sentence_is_cut(words: list[str], width: int) -> None:
    done = CliRunner().invoke(app, [*words, "--help"], terminal_width=width)
    commands = done.output[done.output.index("-h, --help") :]
    assert done.exit_code == 0
    assert not [line for line in commands.splitlines() if line.endswith("...")]


def test_the_help_of_study_has_the_options_of_its_main_use() -> None:
    shown, run = (
        CliRunner().invoke(app, ["study", *words, "--help"]).output for words in ([], ["run"])
    )
    options = [line for line in run.splitlines() if line.lstrip().startswith(("-", "FILE.toml"))]
    assert len(options) >= 7
    assert not [line for line in options if line not in shown]
    assert "study [OPTIONS] FILE.toml\n" in shown
    assert "export" in shown


def test_commands_are_grouped() -> None:
    done = CliRunner().invoke(app, ["--help"])
    headings = [line for line in done.output.splitlines() if line[:1].isalpha()]
    assert "Compare and judge:" in headings
    assert "Commands:" not in headings

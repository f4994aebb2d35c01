"""What the shell sees: exit codes, messages, and silence where nobody listens."""

import subprocess
import sys

import pytest
import typer
from typer.utils import get_params_from_function

from difflab.cli import app

COMMANDS = [
    *("compare", "trace", "graph", "derive", "check", "report", "methods", "doctor", "bench"),
    *("bench accuracy", "bench swell", "bench cost"),
]


def test_help_names_every_command(difflab):
    result = difflab("--help")
    assert result.code == 0
    for command in COMMANDS[:9]:
        assert f"\n  {command}" in result.out
    assert all(len(line) <= 80 for line in result.out.splitlines())


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_fits(difflab, command):
    result = difflab(*command.split(), "-h")
    assert result.code == 0
    assert all(len(line) <= 80 for line in result.out.splitlines())


def test_version(difflab):
    from difflab import __version__

    assert difflab("--version").out == f"difflab {__version__}\n"


@pytest.fixture
def reading(monkeypatch):
    """Names of the functions whose signatures typer reads."""
    found = []
    signature = get_params_from_function
    monkeypatch.setattr(
        typer.main,
        "get_params_from_function",
        lambda function: found.append(function.__name__) or signature(function),
    )
    return found


def test_a_subcommand_is_read_without_the_others(difflab, reading):
    assert difflab("doctor", "-h").code == 0
    assert set(reading) == {"doctor", "_root", "_version"}
    assert difflab("bench", "swell", "-h").code == 0
    assert "compare" not in reading


def test_the_list_of_subcommands_reads_none(difflab, reading):
    assert "Differentiate EXPR by every method" in difflab("--help").out
    assert set(reading) == {"nothing", "_root", "_version"}


def test_a_subcommand_may_follow_two_dashes(difflab):
    result = difflab("--", "derive", "x^2")
    assert (result.code, result.out) == (0, "[2*x]\n")


def test_a_misspelled_subcommand_is_looked_for_among_all(difflab):
    result = difflab("comapre", "x")
    assert result.code == 2
    assert "Did you mean 'compare'?" in result.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["derve", "x"], "derve"),
        (["derive"], "Missing argument"),
        (["derive", "x", "--format", "xml"], "'xml'"),
        (["derive", "x", "--nonsense"], "--nonsense"),
        (["compare", "x", "--order", "3"], "--order"),
        (["compare", "x", "--timeout", "-1"], "--timeout"),
    ],
)
def test_wrong_usage_is_bad_input(difflab, arguments, says):
    result = difflab(*arguments)
    assert result.code == 2
    assert says in result.err
    assert result.out == ""
    assert "Traceback" not in result.err


def test_a_fault_of_its_own_says_so(difflab, monkeypatch):
    def broken():
        raise ZeroDivisionError("division \x1b[31mby zero")

    monkeypatch.setattr("difflab.lab.environment.environment", broken)
    result = difflab("doctor")
    assert result.code == 70
    assert "internal error at test_app.py" in result.err
    assert "a fault in difflab, not in your input" in result.err
    assert "ZeroDivisionError: division \\x1b[31mby zero" in result.err
    assert "Traceback" not in result.err
    monkeypatch.setenv("DIFFLAB_DEBUG", "1")
    assert "Traceback" in difflab("doctor").err


def test_control_c_is_a_short_word(difflab, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("difflab.lab.environment.environment", interrupted)
    result = difflab("doctor")
    assert (result.code, result.out, result.err) == (130, "", "difflab: interrupted\n")


def test_a_reader_that_leaves_is_no_error(tmp_path):
    shell = f"{sys.executable} -m difflab doctor | true"
    done = subprocess.run(
        ["bash", "-c", f"{shell}; echo ${{PIPESTATUS[0]}} >&2"],
        capture_output=True,
        env={"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        check=True,
    )
    assert done.stderr.decode().strip() in {"0", str(app.BROKEN_PIPE)}


def test_starting_loads_nothing_heavy(process):
    code = (
        "import sys, difflab.cli.app\n"
        "heavy = {'numpy', 'scipy', 'sympy', 'mpmath', 'matplotlib', 'rich', 'email', 'hashlib'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "begun"),
    [
        (["compare"], [[]]),
        (["compare", "--help"], []),
        (["compare", "x", "--methods=reverse"], []),
        (["--version"], []),
    ],
)
def test_sympys_process_starts_before_a_comparison_is_loaded(arguments, begun):
    code = (
        "import sys\n"
        "from difflab import cli\n"
        "from difflab.methods.symbolic.method import Symbolic\n"
        "begun = []\n"
        "loaded = {'numpy', 'typer', 'sympy', 'difflab.lab.compare'}\n"
        "Symbolic.start = lambda self: begun.append(sorted(loaded & set(sys.modules)))\n"
        "try:\n"
        f"    cli.main({arguments!r})\n"
        "except SystemExit:\n"
        "    print(begun)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.splitlines()[-1] == str(begun)


def test_the_process_itself(process):
    result = process("--version")
    assert result.code == 0
    assert result.out.startswith("difflab ")
    assert process("derive", "sn(x)").code == 2

"""Outputs that are closed, that end early, that have no Unicode, or that are narrow."""

import os
import pty

import pytest

from difflab.report.terminal import ascii_text

SEED = ("ln(x1)+x1*x2-sin(x2)", "--at", "x1=2,x2=5")
COMPARE = ("compare", *SEED, "--no-timing", "--methods", "finite-forward,reverse")


def test_closed_streams(command):
    script = """
    $difflab compare "x^2" --no-timing --methods forward >&-; echo "out $?"
    $difflab compare "x^2" --no-timing --methods forward -o a.json >&- 2>&-; echo "file $?"
    $difflab compare "x^2" --no-timing --methods forward 2>&- | grep -c agree; echo "err $?"
    $difflab compare - <&-; echo "in $?"
    cat /dev/zero | $difflab compare -; echo "endless $?"
    """
    result = command.shell(script)
    assert not result.blamed, result.err
    assert result.out.split("\n")[:-1] == ["out 2", "file 0", "1", "err 0", "in 2", "endless 2"]
    assert "cannot write to standard output: it is closed" in result.err
    assert "standard input is closed" in result.err
    assert "longer than the limit of 256 MiB" in result.err
    assert (command.folder / "a.json").stat().st_size > 0


def test_a_reader_that_has_seen_enough(command):
    terms = "+".join(f"sin({k}*x)" for k in range(4000))
    (command.folder / "long.txt").write_text(terms)
    script = '$difflab derive @long.txt --format c | head -1; echo "${PIPESTATUS[0]}"'
    result = command.shell(script)
    assert not result.blamed
    assert result.err == ""
    first, code = result.out.splitlines()
    assert first == "#include <math.h>"
    assert code in ("0", "141")


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=["PYTHONIOENCODING", "LC_ALL"],
)
def test_terminals_without_unicode(command, environment):
    """Everything is said in ASCII, in columns that still stand below each other."""
    result = command("trace", *SEED, environment=environment)
    assert result.code == 0, result.err
    assert result.out.isascii()
    assert "\\u" not in result.out
    lines = result.out.splitlines()
    assert "v-1 = x1               2  v-1_dot = x1_dot                          1" in lines
    values = [line for line in lines if line.startswith(("v1 ", "v2 ", "v3 "))]
    assert len(values) == 3
    assert len({len(line) for line in values}) == 1
    assert "v1_bar = v4_bar dv4/dv1" in result.out


def test_what_is_said_in_ascii_is_what_was_said():
    assert ascii_text("v₋₁ → v̇₂, ȳ = x²·√π") == "v-1 -> v2_dot, y_bar = x^2*sqrtpi"
    assert ascii_text("θ ≤ Σ − ½") == "theta <= Sigma - 1/2"


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 120])
def test_tables_are_no_wider_than_the_terminal(columns, capsys, monkeypatch):
    from difflab.cli import main

    monkeypatch.setenv("COLUMNS", str(columns))
    for arguments in (
        (*COMPARE, "--stabilise"),
        COMPARE,
        ("trace", *SEED),
        ("methods",),
        ("graph", "x^1 + 2*3*x", "--passes"),
        ("derive", "x: [30]; x[1:]*x[:-1]", "--sparsity"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        out = capsys.readouterr().out
        assert ended.value.code == 0
        widths = [len(line.replace("̇", "").replace("̄", "")) for line in out.splitlines()]
        assert max(widths) <= columns, (arguments, out)


def test_a_narrow_table_still_says_everything(capsys, monkeypatch):
    from difflab.cli import main

    monkeypatch.setenv("COLUMNS", "40")
    with pytest.raises(SystemExit):
        main(COMPARE)
    out = capsys.readouterr().out
    start = out.index("\nreverse\n")
    words = [line.split(maxsplit=1) for line in out[start:].splitlines()[2:9]]
    assert dict(words)["verdict"] == "agree"
    assert [word for word, _ in words] == [
        *("verdict", "error", "ULP", "tree/DAG", "ops", "prepare", "call"),
    ]


def test_a_terminal_says_how_wide_it_is(command):
    """No COLUMNS: the size of the terminal itself."""
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 44, 0, 0))
    with command.start(*COMPARE, stdout=theirs, environment={"COLUMNS": None}) as process:
        os.close(theirs)
        out = b""
        try:
            while piece := os.read(ours, 4096):
                out += piece
        except OSError:  # the other end is closed
            pass
        process.wait(timeout=600)
    os.close(ours)
    lines = out.decode().splitlines()
    assert "reverse" in lines
    assert max(map(len, lines)) <= 44


def test_progress_does_not_print_a_formula_of_a_million_characters(monkeypatch, capsys):
    from difflab.cli.output import CommandProgressLine

    progress = CommandProgressLine(patience=0.0)
    progress(0, 2, "expression=" + "+".join(f"sin({k}*x)" for k in range(100_000)) + " n=7")
    (line,) = capsys.readouterr().err.splitlines()
    assert len(line) < 300
    assert line.startswith("0 of 2: expression=sin(0*x)")
    assert line.endswith("n=7")

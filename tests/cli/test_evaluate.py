"""``evaluate``: derivatives at the points of a file; expected by algebra."""

from pathlib import Path

import numpy as np
import pytest

X, Y = np.random.default_rng(5).uniform(0.5, 2.0, (2, 500))
VALUE = X**2 * np.sin(Y)
GRADIENT = np.stack([2 * X * np.sin(Y), X**2 * np.cos(Y)], axis=1)
MIXED = 2 * X * np.cos(Y)
HESSIAN = np.array([[2 * np.sin(Y), MIXED], [MIXED, -(X**2) * np.sin(Y)]]).transpose(2, 0, 1)


@pytest.fixture
def points(tmp_path):
    np.save(tmp_path / "in.npy", np.stack([X, Y], axis=1))
    lines = [f"{y!r},{x!r}" for x, y in zip(X.tolist(), Y.tolist(), strict=True)]
    (tmp_path / "in.csv").write_text("\n".join(["y,x", *lines]))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], VALUE),
        (["--value"], VALUE),
        (["--gradient"], GRADIENT),
        (["--jacobian"], GRADIENT[:, np.newaxis]),
        (["--hessian"], HESSIAN),
        (["--value", "--gradient"], np.column_stack([VALUE, GRADIENT])),
    ],
)
@pytest.mark.parametrize("source", ["in.npy", "in.csv"])
def test_the_file_has_the_derivative(difflab, points, options, expected, source):
    command = ("evaluate", "x^2*sin(y)", "--points", source, *options, "-o", "out.npy")
    result = difflab(*command, "--chunk", "100", "--threads", "2")
    assert (result.code, result.out, result.err) == (0, "", "wrote out.npy\n")
    np.testing.assert_allclose(np.load("out.npy"), expected, rtol=1e-13, atol=1e-15)


def test_a_table_has_a_column_for_each_element(difflab, points):
    result = difflab(
        "evaluate", "x^2*sin(y)", "--points", "in.csv", "--value", "--gradient", "-o", "out.csv"
    )
    assert result.code == 0
    first = Path("out.csv").read_text().splitlines()[0]
    assert first == "f,gradient[0],gradient[1]"


def test_a_python_function(difflab, tmp_path):
    (tmp_path / "evaluated_model.py").write_text("def loss(w, x):\n    return (w * w).sum() * x\n")
    np.save(tmp_path / "in.npy", [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    result = difflab(
        *("evaluate", "evaluated_model:loss", "--at", "w=[0.5,1],x=2", "--points", "in.npy"),
        *("--gradient", "-o", "out.npy"),
    )
    assert result.code == 0, result.err
    assert np.load("out.npy").tolist() == [[6.0, 12.0, 5.0], [48.0, 60.0, 41.0]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x^2*sin(y)", "--hessian", "--gradient", "-o", "out.npy"], "one file holds one result"),
        (["x^2*sin(y)", "--value", "--hessian", "-o", "out.npy"], "--hessian and --value"),
        (["[x, y]", "--gradient", "-o", "out.npy"], "one output"),
        (["x*y*z", "-o", "out.npy"], "has the shape 500×2, but the function has 3 flattened"),
        (["x*y", "-o", "out.txt"], "end the name in .npy, .zarr, .parquet, .csv"),
        (["x*y", "-o", "none/out.npy"], "the directory 'none' does not exist"),
        (["x*y", "-o", "out.npy", "--target", "numpi"], "there is no target 'numpi'"),
    ],
)
def test_bad_input_leaves_nothing(difflab, points, arguments, message):
    expression, *rest = arguments
    result = difflab("evaluate", expression, "--points", "in.npy", *rest)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert sorted(path.name for path in Path().iterdir()) == ["in.csv", "in.npy"]


def test_an_interruption_says_how_to_go_on(difflab, points, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("difflab.interop.large.apply", interrupted)
    result = difflab("evaluate", "x*y", "--points", "in.npy", "-o", "out.npy")
    assert result.code == 130
    assert "the same command goes on where this one stops" in result.err


@pytest.mark.usefixtures("points")
def test_a_name_of_a_folder_is_no_file_of_results(difflab, tmp_path):
    result = difflab("evaluate", "x^2*sin(y)", "--points", "in.csv", "-o", "out.npy/")
    assert result.code == 2
    assert "it is a directory" in result.err
    assert not (tmp_path / "out.npy").exists()

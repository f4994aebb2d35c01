"""``derive --sparsity``: the pattern on standard output or in files, and what it does not take."""

import pytest


def test_the_pattern_of_several_outputs_is_that_of_the_jacobian(difflab):
    done = difflab("derive", "[x1*x2, x2^2, x3]", "--sparsity")
    assert done.code == 0
    assert done.out.startswith("Jacobian of [x1*x2, x2^2, x3]\n")
    assert done.out.endswith("\n# # .\n. # .\n. . #\n")
    assert "sweeps    2 forward instead of 3, by coloring columns" in done.out


@pytest.mark.parametrize("options", [[], ["--of", "hessian"], ["--order", "2"]])
def test_the_pattern_of_one_output_is_that_of_the_hessian(difflab, options):
    done = difflab("derive", "x*y + z^3 + y", "--sparsity", *options)
    assert done.out.startswith("Hessian of x*y + z^3 + y\n")
    assert done.out.endswith("\n. # .\n# . .\n. . #\n")


def test_the_jacobian_of_one_output_is_its_gradient(difflab):
    done = difflab("derive", "x*y", "--sparsity", "--of", "jacobian")
    assert "sweeps    1 reverse\n" in done.out
    assert done.out.endswith("\n# #\n")


def test_the_columns_of_chosen_variables(difflab):
    done = difflab("derive", "[x*y, z^2, y]", "--sparsity", "--wrt", "y, x")
    assert done.out.startswith("Jacobian of [x*y, z^2, y] by y, x\n")
    assert done.out.endswith("\n# #\n. .\n# .\n")
    second = difflab(
        "derive", "x: [3]; w: [2]; x[0]*w[0] + w[1]^2", "--sparsity", "--wrt", "w[1],x"
    )
    assert second.out.endswith("\n# . . .\n. . . .\n. . . .\n. . . .\n")


def test_text_and_picture_go_to_files(difflab, tmp_path):
    done = difflab("derive", "x*y", "--sparsity", "--plot", "spy.svg", "-o", "spy.txt")
    assert (done.code, done.out) == (0, "")
    assert sorted(done.err.splitlines()) == ["wrote spy.svg", "wrote spy.txt"]
    assert (tmp_path / "spy.txt").read_text().startswith("Hessian of x*y\n")
    assert "<svg" in (tmp_path / "spy.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x*y", "--sparsity", "--wrt", "z"], "'z'"),
        (["x*y", "--sparsity", "--wrt", "x,x"], "an input twice"),
        (
            ["x*y", "--sparsity", "--format", "c"],
            "--sparsity shows the pattern of a Jacobian or Hessian",
        ),
        (["x*y", "--sparsity", "--of", "gradient"], "--wrt, --of, --order 2, --plot and -o"),
        (["x*y", "--plot", "a.png"], "add --sparsity"),
        (["x*y", "--sparsity", "--plot", "a.gif"], "end the name in .svg, .png, .pdf"),
        (["[x, y]", "--sparsity", "--of", "hessian"], "one output number, this one has 2"),
        (["3", "--sparsity"], "no variable"),
        (["x: [100000]; softmax(x)", "--sparsity"], "not sparse"),
    ],
)
def test_what_cannot_be_shown_is_refused(difflab, tmp_path, arguments, message):
    done = difflab("derive", *arguments)
    assert done.code == 2
    assert message in done.err
    assert list(tmp_path.iterdir()) == []

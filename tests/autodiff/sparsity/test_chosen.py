"""Sparse derivatives by chosen inputs: the columns of SymPy's derivatives."""

import numpy as np
import pytest
import sympy

import difflab as dl
from difflab.autodiff.sparsity import sparsity
from difflab.errors import InputError
from tests.support.rows import for_each

X = sympy.symbols("x:4")
W = sympy.symbols("w:4")
TEXT = "x: [4]; w: [4]; "
MAPS = TEXT + "[x[0]*w[1] + sin(x[1]), w[0]*w[2]^2, x[2]*x[3]*w[3], exp(x[1])*w[1]]"
ENERGY = TEXT + "x[0]^2*w[0] + x[0]*x[1]*w[1] + sin(w[2]*w[3]) + x[3]^3*w[0]*w[3]"
MAPS_SYMPY = (
    X[0] * W[1] + sympy.sin(X[1]),
    W[0] * W[2] ** 2,
    X[2] * X[3] * W[3],
    sympy.exp(X[1]) * W[1],
)
ENERGY_SYMPY = (
    X[0] ** 2 * W[0] + X[0] * X[1] * W[1] + sympy.sin(W[2] * W[3]) + X[3] ** 3 * W[0] * W[3]
)
CHOICES = {
    "w": W,
    "x": X,
    ("w", "x"): W + X,
    "w[3]": (W[3],),
    ("x[1]", "w[0]", "w[2]", "x[0]"): (X[1], W[0], W[2], X[0]),
    ("w[3]", "x"): (W[3], *X),
}
AT = {"x": np.array([0.3, -0.7, 1.1, 0.4]), "w": np.array([1.5, 0.2, -0.6, 0.9])}
VALUES = dict(zip(X + W, [*AT["x"], *AT["w"]], strict=True))


def numbers(matrix):
    return np.array(matrix.subs(VALUES).evalf(20).tolist(), dtype=float)


def names(wrt):
    return wrt if isinstance(wrt, str) else list(wrt)


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse", "bidirectional"])
@for_each("wrt", CHOICES)
def test_columns_of_a_jacobian(wrt, mode):
    f = dl.parse(MAPS)
    derivative = dl.sparse_jacobian(f, mode, wrt=names(wrt))
    expected = numbers(sympy.Matrix(MAPS_SYMPY).jacobian(list(CHOICES[wrt])))
    np.testing.assert_allclose(derivative(**AT).toarray(), expected, rtol=1e-14, atol=1e-15)
    assert derivative.function.inputs == f.inputs
    pattern = sparsity(f, wrt=names(wrt)).toarray()
    assert np.array_equal(pattern, expected != 0)
    assert np.array_equal(derivative.pattern.toarray(), pattern)
    assert derivative.directions.max(initial=-1) < sum(derivative.sweeps)


@pytest.mark.parametrize("coloring", ["star", "acyclic", "auto"])
@for_each("wrt", CHOICES)
def test_rows_and_columns_of_a_hessian(wrt, coloring):
    derivative = dl.sparse_hessian(dl.parse(ENERGY), coloring, wrt=names(wrt))
    expected = numbers(sympy.hessian(ENERGY_SYMPY, list(CHOICES[wrt])))
    np.testing.assert_allclose(derivative(**AT).toarray(), expected, rtol=1e-13, atol=1e-13)
    assert derivative.pattern.shape == expected.shape


def test_the_other_columns_need_no_sweeps():
    f = dl.parse("x: [1000]; w: [1000]; sum(x)*w + x^2")
    assert sum(dl.sparse_jacobian(f, "forward", wrt="w").sweeps) == 1
    assert sum(dl.sparse_jacobian(f, "forward", wrt=["w[0]", "w[999]"]).sweeps) == 1
    assert dl.sparse_jacobian(f, wrt="w").pattern.nnz == 1000


@for_each("wrt", ["y", [], ["x", "x"], ["x", "x[0]"], "x[9]", 3])
@pytest.mark.parametrize("transform", [dl.sparse_jacobian, dl.sparse_hessian, sparsity])
def test_names_of_no_input_are_refused(transform, wrt):
    with pytest.raises(InputError):
        transform(dl.parse(ENERGY), wrt=wrt)

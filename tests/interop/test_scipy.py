"""SciPy's solvers with difflab's derivatives reach published solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import solve_ivp
from scipy.optimize import NonlinearConstraint, least_squares, minimize, root
from scipy.optimize._numdiff import approx_derivative

import difflab as dl
from difflab.errors import DifflabError, InputError, PointError, UnsupportedError
from difflab.interop.scipy import problem
from tests.support.rows import for_each

ROSENBROCK = "100*(x2 - x1^2)^2 + (1 - x1)^2"
CHAINED = "x: [50]; sum(100*(x[1:] - x[:-1]^2)^2 + (1 - x[:-1])^2)"


@for_each(
    ("method", "names"),
    [
        ("BFGS", ()),
        ("L-BFGS-B", ()),
        ("SLSQP", ()),
        ("Newton-CG", ("hess",)),
        ("Newton-CG", ("hessp",)),
        ("dogleg", ("hess",)),
        ("trust-exact", ("hess",)),
        ("trust-ncg", ("hessp",)),
        ("trust-constr", ("hess",)),
        ("trust-constr", ("hessp",)),
    ],
)
def test_minimize_reaches_rosenbrocks_minimum(method: str, names: tuple[str, ...]) -> None:
    p = problem(dl.parse(ROSENBROCK))
    given = {name: getattr(p, name) for name in names}
    start = [-1.2, 1.0] if method != "dogleg" else [0.8, 0.6]  # where the Hessian is positive
    found = minimize(p.fun, start, jac=p.jac, method=method, tol=1e-10, **given)
    np.testing.assert_allclose(found.x, [1.0, 1.0], atol=2e-6)
    assert isinstance(p.fun([1.0, 1.0]), float)


@pytest.mark.parametrize("method", ["trust-constr", "Newton-CG"])
def test_sparse_hessians(method: str) -> None:
    p = problem(dl.parse(CHAINED), sparse=True)
    H = p.hess(np.ones(50))
    assert isinstance(H, sparse.csr_array)
    assert H.nnz == 148
    found = minimize(p.fun, np.zeros(50), jac=p.jac, hess=p.hess, method=method, tol=1e-9)
    np.testing.assert_allclose(found.x, np.ones(50), atol=1e-5)


@pytest.mark.parametrize("whole", [True, False])
def test_constraints_of_hock_and_schittkowski_71(whole: bool) -> None:
    """Minimum 17.0140173 at (1, 4.743, 3.8211503, 1.3794082), in their collection of 1981."""
    p = problem(dl.parse("x1*x4*(x1+x2+x3) + x3"))
    c = problem(dl.parse("[x1*x2*x3*x4, x1^2+x2^2+x3^2+x4^2]"), sparse=whole)
    limits = NonlinearConstraint(c.fun, [25, 40], [np.inf, 40], jac=c.jac, hess=c.hess)
    found = minimize(
        p.fun,
        [1.0, 5.0, 5.0, 1.0],
        jac=p.jac,
        hess=p.hess,
        bounds=[(1, 5)] * 4,
        constraints=[limits],
        method="trust-constr",
        options={"gtol": 1e-10, "xtol": 1e-12, "maxiter": 2000},
    )
    assert found.fun == pytest.approx(17.0140173, rel=1e-6)  # from inside the bounds
    np.testing.assert_allclose(found.x, [1, 4.743, 3.8211503, 1.3794082], atol=1e-4)


def test_the_hessian_of_weighted_outputs_is_the_sum_by_algebra() -> None:
    for whole in (True, False):
        c = problem(dl.parse("[w^2*x, x^3, w*v]"), sparse=whole)  # v is the multipliers' name too
        assert c.inputs == ("v", "w", "x")
        H = c.hess([3.0, 2.0, 5.0], [1.0, 10.0, 100.0])
        assert (H.toarray() if whole else H).tolist() == [[0, 100, 0], [100, 10, 4], [0, 4, 300]]
    one = problem(dl.parse("x^3"))
    assert one.hess([2.0], [10.0]).tolist() == [[120.0]]


NIST = sorted(p.name for p in dl.problems() if p.set == "nist")
NEARER = {"nist/eckerle4": 0.01, "nist/mgh09": 0.001, "nist/mgh10": 0.01, "nist/mgh17": 0.01}


def residuals(name: str) -> Any:
    """Return the residuals whose squares a problem of NIST adds up."""
    *data, last = dl.problem(name).text.strip().splitlines()
    assert last.startswith("sum((")
    assert last.endswith(")^2)")
    return dl.parse("\n".join([*data, last[4:-3]]))


@for_each("name", [name for name in NIST if name != "nist/nelson"])
def test_least_squares_reaches_nists_certified_parameters(name: str) -> None:
    library = dl.problem(name)
    p = problem(residuals(name))
    # From NIST's first start Gauss and Newton's method reaches other minima, whoever derives.
    certified = p.pack(**library.certified)
    start = p.pack(**library.start)
    start = certified + (start - certified) * NEARER.get(name, 0.1)
    found = least_squares(
        p.fun, start, jac=p.jac, x_scale="jac", xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=5000
    )
    np.testing.assert_allclose(found.x, certified, rtol=1e-6)


def test_data_are_constants() -> None:
    """Misra1a of NIST, with its data given at the call."""
    x = [77.6, 114.9, 141.1, 190.8, 239.9, 289.0, 332.8, 378.4, 434.8, 477.3]
    x += [536.8, 593.1, 689.1, 760.0]
    y = [10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02, 44.82, 50.76, 55.05]
    y += [61.01, 66.40, 75.47, 81.78]
    model = dl.parse("x: [14]; y: [14]; b1*(1-exp(-b2*x)) - y")
    p = problem(model, constants={"x": x, "y": y})
    assert p.inputs == ("b1", "b2")
    found = least_squares(p.fun, [250.0, 5e-4], jac=p.jac, x_scale="jac", xtol=1e-15)
    np.testing.assert_allclose(found.x, [2.3894212918e2, 5.5015643181e-4], rtol=1e-8)
    values = p.unpack(found.x)
    assert list(values) == ["b1", "b2"]
    assert 2 * found.cost == pytest.approx(1.2455138894e-1, rel=1e-10)


def test_sparse_least_squares() -> None:
    """Broyden's tridiagonal function of Moré, Garbow and Hillstrom has a zero."""
    text = "x: [30]; [(3-2*x[0])*x[0] - 2*x[1] + 1, (3-2*x[1:-1])*x[1:-1] - x[:-2] - 2*x[2:] + 1,"
    f = dl.parse(text + " (3-2*x[29])*x[29] - x[28] + 1]")
    p = problem(f, sparse=True)
    assert p.sparsity.nnz == 3 * 30 - 2
    assert (p.jac(-np.ones(30)) != 0).nnz == p.sparsity.nnz
    for given in ({"jac": p.jac}, {"jac_sparsity": p.sparsity}):
        found = least_squares(p.fun, -np.ones(30), method="trf", **given)
        assert found.cost < 1e-15
    dense = root(p.fun, -np.ones(30), jac=problem(f).jac)
    np.testing.assert_allclose(dense.x, found.x, atol=1e-7)


@pytest.mark.parametrize("method", ["hybr", "lm"])
def test_root_of_freudenstein_and_roth(method: str) -> None:
    """The zero (5, 4), Moré, Garbow and Hillstrom's problem 2."""
    p = problem(dl.parse("[-13+x1+((5-x2)*x2-2)*x2, -29+x1+((x2+1)*x2-14)*x2]"))
    found = root(p.fun, [6.0, 3.0], jac=p.jac, method=method)
    np.testing.assert_allclose(found.x, [5.0, 4.0], rtol=1e-9)


HIRES = """[-1.71*y1 + 0.43*y2 + 8.32*y3 + 0.0007, 1.71*y1 - 8.75*y2,
-10.03*y3 + 0.43*y4 + 0.035*y5, 8.32*y2 + 1.71*y3 - 1.12*y4, -1.745*y5 + 0.43*y6 + 0.43*y7,
-280*y6*y8 + 0.69*y4 + 1.71*y5 - 0.43*y6 + 0.69*y7, 280*y6*y8 - 1.81*y7, -280*y6*y8 + 1.81*y7]"""
HIRES_END = [
    *(0.7371312573325668e-3, 0.1442485726316185e-3, 0.5888729740967575e-4, 0.1175651343283149e-2),
    *(0.2386356198831331e-2, 0.6238968252742796e-2, 0.2849998395185769e-2, 0.2850001604814231e-2),
]
"""At t = 321.8122: the Test Set for Initial Value Problem Solvers, release 2.4."""


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("method", ["Radau", "BDF"])
def test_solve_ivp_reaches_the_published_end_of_hires(method: Any, whole: bool) -> None:
    p = problem(dl.parse(HIRES.replace("\n", " ")), time="t", sparse=whole)
    start = np.array([1, 0, 0, 0, 0, 0, 0, 0.0057])
    found = solve_ivp(p.fun, (0, 321.8122), start, method=method, jac=p.jac, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(found.y[:, -1], HIRES_END, rtol=1e-6)


def brusselator(u: Any, v: Any, alpha: Any) -> Any:
    """The Brusselator with diffusion of Hairer and Wanner (1996), chapter IV.10, N = 40."""
    c = alpha * 41**2
    left, right = np.ones(1), np.ones(1)
    du = 1 + u**2 * v - 4 * u + c * np.diff(np.concatenate([left, u, right]), 2)
    dv = 3 * u - u**2 * v + c * np.diff(np.concatenate([3 * left, v, 3 * right]), 2)
    return du, dv


def test_the_brusselator_is_sparse() -> None:
    f = dl.trace(brusselator, np.ones(40), np.ones(40), 0.02)
    p = problem(f, constants={"alpha": 0.02}, time="t", sparse=True)
    x = np.arange(1, 41) / 41
    start = p.pack(u=1 + np.sin(2 * np.pi * x), v=np.full(40, 3.0))
    u, v = start[:40], start[40:]
    second = 0.02 * 41**2 * sparse.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(40, 40))
    by_hand = np.block(
        [
            [second.toarray() + np.diag(2 * u * v - 4), np.diag(u**2)],
            [np.diag(3 - 2 * u * v), second.toarray() - np.diag(u**2)],
        ]
    )
    np.testing.assert_allclose(p.jac(0.0, start).toarray(), by_hand, rtol=1e-13, atol=1e-13)
    assert (p.sparsity.toarray() == (by_hand != 0)).all()
    tight = {"rtol": 1e-8, "atol": 1e-8}
    ours = solve_ivp(p.fun, (0, 10), start, method="Radau", jac=p.jac, **tight)
    theirs = solve_ivp(
        lambda t, y: np.concatenate(brusselator(y[:40], y[40:], 0.02)),
        *((0, 10), start, "Radau"),
        **tight,
    )
    np.testing.assert_allclose(ours.y[:, -1], theirs.y[:, -1], rtol=1e-6)
    grouped = solve_ivp(p.fun, (0, 10), start, method="Radau", jac_sparsity=p.sparsity, **tight)
    np.testing.assert_allclose(grouped.y[:, -1], theirs.y[:, -1], rtol=1e-6)


@pytest.mark.parametrize("whole", [True, False])
def test_time_is_the_first_argument_wherever_it_stands_in_the_formula(whole: bool) -> None:
    f = dl.parse("[-k*a*t, k*a - z^2*t]")
    p = problem(f, time="t", constants={"k": 2.0}, sparse=whole)
    assert p.inputs == ("a", "z")
    assert (p.n, p.m) == (2, 2)
    assert p.fun(0.5, [1.0, 3.0]).tolist() == [-1.0, -2.5]
    J = p.jac(0.5, [1.0, 3.0])
    assert (J.toarray() if whole else J).tolist() == [[-1.0, 0.0], [2.0, -3.0]]
    assert p.sparsity.astype(int).toarray().tolist() == [[1, 0], [1, 1]]
    one = problem(dl.parse("-y*t"), time="t")
    assert one.fun(2.0, [3.0]).tolist() == [-6.0]
    assert one.jac(2.0, [3.0]).tolist() == [[-2.0]]


@pytest.mark.parametrize("target", ["numpy", "python"])
def test_a_compiled_function_keeps_its_target(target: Any) -> None:
    p = problem(dl.compile(dl.parse(ROSENBROCK), target=target, threads=1))
    assert (p.target, p.threads) == (target, 1)
    assert p.fun([1.0, 2.0]) == 100.0
    np.testing.assert_allclose(p.jac([1.0, 2.0]), [-400.0, 200.0])


def test_pack_and_unpack() -> None:
    p = problem(dl.parse("W: [2, 2]; x: [2]; sum(tanh(W @ x))"))
    vector = p.pack(x=[5.0, 6.0], W=[[1.0, 2.0], [3.0, 4.0]])
    assert vector.tolist() == [1, 2, 3, 4, 5, 6]
    back = p.unpack(vector)
    assert back["W"].tolist() == [[1, 2], [3, 4]]
    with pytest.raises(PointError, match="'W' has the shape"):
        p.pack(x=[5.0, 6.0], W=[1.0])


@for_each(
    ("f", "settings", "said"),
    [
        ("x^2", {"constants": {"z": 1}}, "'z', which is no input"),
        ("x^2", {"constants": {"x": 1}}, "no variable"),
        ("x^2", {"constants": 3}, "values by name"),
        ("x: [3]; sum(x)", {"constants": {"x": [1.0]}}, "shape"),
        ("x: [3]; sum(x)*y", {"constants": {"x": np.ones((2, 3))}}, "shape"),
        ("[x*tt, y*tt]", {"time": "t"}, "a derivative for each of the 3 variables"),
        ("t: [2]; t*x", {"time": "t"}, "an array, not a number"),
        ("t*x", {"time": "t", "constants": {"t": 1.0}}, "no constant"),
        ("x^2", {"time": 3}, "the name of an input"),
        ("x^2", {"sparse": "yes"}, "True or False"),
    ],
)
def test_what_is_refused(f: str, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(DifflabError, match=said):
        problem(dl.parse(f), **settings)


def test_other_objects_and_points_are_refused() -> None:
    with pytest.raises(InputError, match="problem takes a Function, not str"):
        problem("x^2")  # type: ignore[arg-type]
    p = problem(dl.parse("[x*y, x+y]"))
    with pytest.raises(InputError, match="needs their weights v"):
        p.hess([1.0, 2.0])
    with pytest.raises(InputError, match="hessp needs a function with one output"):
        p.hessp([1.0, 2.0], [1.0, 0.0])
    with pytest.raises(PointError, match="2 elements"):
        p.fun([1.0, 2.0, 3.0])


ANALYTIC = {
    "rosenbrock": ("(1 - x)^2 + 100*(y - x^2)^2", [-1.2, 1.0]),
    "residuals": ("x: [2]; [x[0]*sin(x[1]), exp(x[0]) - gamma(x[1] + 2), sqrt(x[1])]", [0.3, 0.7]),
    "matrices": ("A: [2, 2]; logdet(A @ A + 1)", [2.0, 0.3, 0.4, 1.5]),
    "linear system": ("A: [2, 2]; b: [2]; solve(A, b)", [2.0, 0.3, 0.4, 1.5, 1.0, -1.0]),
}


@pytest.mark.parametrize("name", ANALYTIC)
def test_scipys_complex_step_sees_every_derivative(name: str) -> None:
    text, start = ANALYTIC[name]
    p = problem(dl.parse(text))
    found = approx_derivative(p.fun, start, method="cs")
    differences = approx_derivative(p.fun, start, method="3-point")
    np.testing.assert_allclose(found, differences, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found, p.jac(start), rtol=1e-12, atol=1e-13)


def test_minimize_with_the_complex_step_finds_the_minimum() -> None:
    p = problem(dl.parse("(1 - x)^2 + 100*(y - x^2)^2"))
    found = minimize(p.fun, [-1.2, 1.0], jac="cs")
    assert found.success
    np.testing.assert_allclose(found.x, [1.0, 1.0], atol=1e-5)
    gradient = minimize(p.fun, [-1.2, 1.0], jac=p.jac, hess="cs", method="trust-constr")
    np.testing.assert_allclose(gradient.x, [1.0, 1.0], atol=1e-5)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_second_derivatives_at_complex_points(is_sparse: bool) -> None:
    p = problem(dl.parse("x: [2]; [x[0]*sin(x[1]), exp(x[0]*x[1])]"), sparse=is_sparse)
    x, step = np.array([0.3, 0.7]), 1e-30
    moved = p.jac(np.array([x[0] + step * 1j, x[1]]))
    column = (moved.toarray() if is_sparse else moved).imag / step
    expected = [[0.0, np.cos(0.7)], [0.49 * np.exp(0.21), 1.21 * np.exp(0.21)]]
    np.testing.assert_allclose(column, expected, atol=1e-12)


@pytest.mark.parametrize("text", ["abs(x) + y", "max(x, y)", "where(x > 0, x, y)"])
def test_a_function_that_is_not_analytic_is_refused_at_complex_points(text: str) -> None:
    p = problem(dl.parse(text))
    assert np.isfinite(p.fun([0.5, 1.0]))
    with pytest.raises(UnsupportedError, match=r"needs an analytic function; .* is not"):
        minimize(p.fun, [0.5, 1.0], jac="cs")

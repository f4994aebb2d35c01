"""Problems of CUTEst reach the minimum that their SIF files or papers state."""

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize

import difflab as dl

FREE = ["akiva", "tointgor", "tointpsp", "tointqor"]
BROYDEN = "broyden-7-diagonals-10"
LARGEST = ["cb2", "cb3"]
SMALL = {
    "allinitu": 13.0,
    "bdqrtic-100": 21696.0,
    "brkmcc": None,
    "chnrosnb-10": 1501.28,
    "cliff": 485165194.410690,
    "cragglvy-10": 3303.56651669987,
    "denschna": 7.95249244201256,
    "denschnb": 6.0,
    "denschnc": 889.303147521883,
    "denschnd": 83210000.0,
    "denschne": 148.999329187279,
    "denschnf": 416.0,
    "dixmaanb-15": 228.25,
    "engval2": 629.0,
    "errinros-10": 21892.4976,
    "expfit": 24.0625,
    "hairy": 700.846810423719,
    "himmelbb": 26656.1334557437,
    "himmelbf": 29053.0023566289,
    "himmelbg": 0.459849301464303,
    "himmelbh": 2.0,
    "humps": 25614.3346824172,
    "loghairy": 6.55251979193427,
    "maratosb": 48401.1,
    "quartc-10": 8773.0,
    "s308": 87.6860481455954,
    "schmvett-10": -22.88052448839,
    "sineval": 5.55165252183025,
    "sisser": None,
    "tquartic-10": None,
    "zangwil2": -16.6,
}
"""The value at the start by sif2jax, decoded from the SIF files by others.

It is absent where sif2jax differs from the paper: the sign of 1 in the reciprocal of brkmcc and of
1 in the first term of tquartic, and a coefficient of sisser.
"""


def packed_start(problem):
    return np.concatenate([np.ravel(problem.start[name]) for name in problem.function.inputs])


def minimised(problem, start=None, **options):
    """Return SciPy's minimum of the first output, with derivatives by difflab."""
    function = problem.function
    jacobian = dl.compile(dl.jacobian(function), packed=True)

    def values(x):
        return function.values(np.asarray(x)[None])[0]

    def slopes(x):
        return np.reshape(jacobian(np.asarray(x)), (function.m, function.n))

    constraint = {
        "type": options.pop("constraint", "ineq"),
        "fun": lambda x: values(x)[1:],
        "jac": lambda x: slopes(x)[1:],
    }
    return minimize(
        lambda x: values(x)[0],
        packed_start(problem) if start is None else start,
        jac=lambda x: slopes(x)[0],
        constraints=[constraint] if function.m > 1 else (),
        **options,
    )


@pytest.mark.parametrize("name", FREE)
def test_they_reach_the_published_minimum(name):
    """All data count at the minimum: 50 weights, 33 more, 33 demands, a network; 21 journeys."""
    problem = dl.problem(f"cutest/{name}")
    found = minimised(problem, method="BFGS", options={"maxiter": 5000, "gtol": 1e-8})
    assert found.fun == pytest.approx(float(problem.header["optimum"]), rel=1e-10)


@pytest.mark.parametrize("name", SMALL)
def test_small_ones_reach_the_published_minimum(name):
    """From the published start, so that text, start and minimum belong together."""
    problem = dl.problem(f"cutest/{name}")
    published = problem.header["optimum"]
    found = minimised(problem, method="BFGS", options={"maxiter": 5000, "gtol": 1e-9})
    last_digit = 10.0 ** -len(published.partition(".")[2][:12]) if "." in published else 1e-10
    assert found.fun == pytest.approx(float(published), abs=last_digit)


@pytest.mark.parametrize("name", [name for name, value in SMALL.items() if value is not None])
def test_small_ones_have_the_value_that_others_decoded(name):
    reference = dl.problem(f"cutest/{name}").reference
    assert float(reference.value[0]) == pytest.approx(SMALL[name], rel=1e-13)


def test_the_minimum_of_expfit_is_proved(monkeypatch):
    """The sum has one lowest point, by interval arithmetic: each beta has a best alpha, s/q.

    With w = exp(beta*t), s = sum(t*w) and q = sum(w*w) the least sum is sum(t*t) - s*s/q, and
    sum(t*w*(t*q - s*w)) has the sign of its descent.
    """
    iv, number = mpmath.iv, mpmath.mpf
    monkeypatch.setattr(iv, "dps", 40)
    monkeypatch.setattr(mpmath.mp, "dps", 40)
    header = dl.problem("cutest/expfit").header
    alpha, beta = (number(part.partition(" = ")[2]) for part in header["solution"].split(", "))
    t = [iv.mpf(k) / 4 for k in range(1, 11)]

    def weights(b):  # scaled, which changes no sign and no quotient
        return [iv.exp(b * (x - (t[-1] if b.b > 0 else t[0]))) for x in t]

    def sums(w):
        return sum(x * y for x, y in zip(t, w, strict=True)), sum(y * y for y in w)

    def least(w):
        s, q = sums(w)
        return sum(x * x for x in t) - s * s / q

    def descent(b):
        s, q = sums(w := weights(b))
        return sum(x * y * (x * q - s * y) for x, y in zip(t, w, strict=True))

    def everywhere(holds, low, high):
        """Prove a statement about an interval, about its halves if need be."""
        if not holds(iv.mpf([low, high])):
            assert high - low > 1e-33
            everywhere(holds, low, (low + high) / 2)
            everywhere(holds, (low + high) / 2, high)

    for edge in (-16, 16):  # beyond, all weights but the largest are between 0 and these
        assert least([w if w == 1 else iv.mpf([0, w.b]) for w in weights(iv.mpf(edge))]) > 1
    left, right = number("0.5"), number("0.9")
    for low, high in ((number(-16), left), (right, number(16))):
        everywhere(lambda b: least(weights(b)) > 0.2406, low, high)
    low, high = beta - number("1e-29"), beta + number("1e-29")
    everywhere(lambda b: descent(b) > 0, left, low)
    everywhere(lambda b: descent(b) < 0, high, right)
    w = [iv.exp(iv.mpf([low, high]) * x) for x in t]
    s, q = sums(w)
    assert abs(s / q - alpha) < 1e-27
    assert abs(least(w) - number(header["optimum"])) < 1e-25  # as wide as the interval makes it


@pytest.mark.parametrize("name", LARGEST)
def test_the_largest_of_three_functions_is_least_where_published(name):
    problem = dl.problem(f"cutest/{name}")
    found = minimised(problem, method="SLSQP", options={"ftol": 1e-14})
    assert found.fun == pytest.approx(float(problem.header["optimum"]), rel=1e-9)


def test_aljazzaf_is_least_at_a_corner():
    problem = dl.problem("cutest/aljazzaf-3")
    bounds = [(0, None)] * 3
    found = minimised(problem, method="SLSQP", constraint="eq", bounds=bounds)
    # The file of n = 3 states 75.004996; the multiplier of the constraint is 0 at (1, 0, 1).
    assert found.fun == pytest.approx(75.004996, abs=1e-5)


def test_broyden_has_seven_diagonals():
    problem = dl.problem(f"cutest/{BROYDEN}")
    x = packed_start(problem)
    wide = np.array([0, *x, 0])
    inner = (3 - 2 * x) * x - wide[:-2] - 2 * wide[2:] + 1
    expected = np.sum(np.abs([*inner, *(x[:5] + x[5:])]) ** (7 / 3))
    assert float(problem.reference.value[0]) == pytest.approx(expected, rel=1e-14)
    # One of its local minima is the one that the file states; a lower one is 1.2611.
    found = minimised(problem, -np.ones(10), method="BFGS")
    assert found.fun == pytest.approx(1.2701, abs=5e-5)


def test_every_problem_is_here():
    names = {one.name.partition("/")[2] for one in dl.problems(["cutest"])}
    assert names == {*FREE, *LARGEST, *SMALL, BROYDEN, "aljazzaf-3"}

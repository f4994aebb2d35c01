"""Problems of optimisation reach the published minimum: SciPy, from the start, with the bounds.

Bounds, and which constraints are equalities (the last ones), are facts of Hock and Schittkowski's
collection that the library does not keep. Other expected values are minima known by algebra.
"""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

import difflab as dl

FREE, POSITIVE = (-math.inf, math.inf), (0.0, math.inf)
EQUALITIES = {
    **dict.fromkeys((6, 7, 9, 14, 26, 27, 28, 32, 41, 60, 62, 71, 73), 1),
    **dict.fromkeys((39, 42, 46, 48, 49, 61, 63, 77), 2),
    **dict.fromkeys((40, 47, 50, 51, 52, 74, 78, 79, 80, 81), 3),
    56: 4,
}
BOUNDS = {
    1: [FREE, (-1.5, math.inf)],
    **{number: [POSITIVE] * n for number, n in ((13, 2), (24, 2), (32, 3), (35, 3), (44, 4))},
    **{number: [POSITIVE] * n for number, n in ((63, 3), (73, 4), (76, 4), (93, 6))},
    15: [(-math.inf, 0.5), FREE],
    18: [(2, 50), (0, 50)],
    19: [(13, 100), (0, 100)],
    21: [(2, 50), (-50, 50)],
    23: [(-50, 50)] * 2,
    30: [(1, 10), (-10, 10), (-10, 10)],
    31: [(-10, 10), (1, 10), (-10, 1)],
    33: [POSITIVE, POSITIVE, (0, 5)],
    34: [(0, 100), (0, 100), (0, 10)],
    36: [(0, 20), (0, 11), (0, 42)],
    41: [(0, 1)] * 3 + [(0, 2)],
    45: [(0, i) for i in range(1, 6)],
    60: [(-10, 10)] * 3,
    62: [(0, 1)] * 3,
    64: [(1e-5, math.inf)] * 3,
    65: [(-4.5, 4.5)] * 2 + [(-5, 5)],
    66: [(0, 100), (0, 100), (0, 10)],
    71: [(1, 5)] * 4,
    72: [(0.001, (5 - i) * 1e5) for i in range(1, 5)],
    74: [(0, 1200)] * 2 + [(-0.55, 0.55)] * 2,
    80: [(-2.3, 2.3)] * 2 + [(-3.2, 3.2)] * 3,
    81: [(-2.3, 2.3)] * 2 + [(-3.2, 3.2)] * 3,
    83: [(78, 102), (33, 45)] + [(27, 45)] * 3,
    95: [(0, high) for high in (0.31, 0.046, 0.068, 0.042, 0.028, 0.0134)],
    106: [(100, 10000)] + [(1000, 10000)] * 2 + [(10, 1000)] * 5,
    108: [FREE] * 8 + [POSITIVE],
    110: [(2.001, 9.999)] * 10,
}
ABOVE = {83: (92, 20, 5)}
"""The upper ends of constraints that have two."""
STARTS = {61: (5.0, -2.0, 3.0)}
"""Near the published solution, where the start leads to another minimum."""
CUSP = 13
"""Its solution satisfies no constraint qualification, and is reached slowly."""
UNCONSTRAINED = {
    **dict.fromkeys(("arwhead-10", "dqdrtic-10", "tridia-10", "liarwhd-10", "power-10"), 0),
    **dict.fromkeys(("fletchcr-10", "extended-beale-10", "extended-himmelblau-10"), 0),
    **dict.fromkeys(("extended-hiebert-10", "extended-white-and-holst-10", "biggsb1-10"), 0),
    **dict.fromkeys(("generalized-white-and-holst-10", "extended-bd1-10", "nondquar-10"), 0),
    **dict.fromkeys(("perturbed-quadratic-10", "almost-perturbed-quadratic-10"), 0),
    "extended-tridiagonal-1-10": 0,
    "dixmaana-12": 1,
    "genrose-10": 1,
    "cosine-10": -9,
    "extended-cliff-10": 5 * 0.199786613,
    "extended-freudenstein-and-roth-10": 5 * 48.98425367924,
    "extended-three-exponential-terms-10": 5 * 2 * math.sqrt(2) * math.exp(-0.1),
    "raydan-1-10": sum(i / 10 for i in range(1, 11)),
    "raydan-2-10": 10,
    "diagonal-1-10": sum(i * (1 - math.log(i)) for i in range(1, 11)),
    "diagonal-2-10": sum((1 + math.log(i)) / i for i in range(1, 11)),
    "hager-10": sum(math.sqrt(i) * (1 - math.log(i) / 2) for i in range(1, 11)),
}


def packed_start(problem):
    return np.concatenate([np.ravel(problem.start[name]) for name in problem.function.inputs])


def minimum(problem, number):
    """Return the smallest feasible value that a few runs reach."""
    function, jacobian = problem.function, dl.compile(dl.jacobian(problem.function))
    first_equality = function.m - EQUALITIES.get(number, 0)

    def values(x):
        return function.values(np.asarray(x)[None])[0]

    def slopes(x):
        return np.reshape(jacobian(*x), (function.m, function.n))

    def part(rows, kind):
        return {"type": kind, "fun": lambda x: values(x)[rows], "jac": lambda x: slopes(x)[rows]}

    ranges = slice(1, first_equality), slice(first_equality, None)
    constraints = [part(rows, kind) for rows, kind in zip(ranges, ("ineq", "eq"), strict=True)]
    constraints = [each for each in constraints if each["fun"](packed_start(problem)).size]
    if number in ABOVE:
        ends = np.array(ABOVE[number])
        more = {"fun": lambda x: ends - values(x)[1:], "jac": lambda x: -slopes(x)[1:]}
        constraints.append({"type": "ineq", **more})
    bounds = BOUNDS.get(number, [FREE] * function.n)
    low, high = np.array(bounds).T
    random, best = np.random.default_rng(0), math.inf
    wanted = float(problem.header["optimum"])
    for attempt in range(6):
        x = np.array(STARTS.get(number, packed_start(problem)), dtype=float)
        moved = x + (attempt > 0) * random.normal(size=x.size) * (0.1 + 0.3 * np.abs(x))
        found = minimize(
            lambda x: values(x)[0],
            np.clip(moved, low, high),
            jac=lambda x: slopes(x)[0],
            bounds=bounds,
            constraints=constraints,
            method="SLSQP",
            options={"maxiter": 1000, "ftol": 1e-14},
        )
        off = [np.min(c["fun"](found.x)) for c in constraints if c["type"] == "ineq"]
        off += [-np.max(np.abs(c["fun"](found.x))) for c in constraints if c["type"] == "eq"]
        if min(off, default=0.0) > -1e-6 * (1 + np.max(np.abs(values(found.x)))):
            best = min(best, found.fun)
        if best <= wanted + 1e-6 * (1 + abs(wanted)):
            break
    return best


@pytest.mark.parametrize("problem", dl.problems(["hs"]), ids=lambda problem: problem.name)
@pytest.mark.filterwarnings("ignore")
def test_hock_and_schittkowski_reach_the_published_minimum(problem):
    number = int(problem.header["name"].split(":")[0].rpartition(" ")[2])
    wanted = float(problem.header["optimum"])
    near = 1e-4 if number == CUSP else 1e-6
    with np.errstate(all="ignore"):
        assert minimum(problem, number) == pytest.approx(wanted, rel=near, abs=near)


@pytest.mark.parametrize("name", UNCONSTRAINED)
def test_unconstrained_problems_reach_their_minimum(name):
    problem = dl.problem(f"unconstrained/{name}")
    both = dl.compile(dl.value_and_gradient(problem.function))

    def value_and_slope(x):
        value, slope = both(x)
        return float(value), np.ravel(slope)

    with np.errstate(all="ignore"):
        found = minimize(
            value_and_slope,
            packed_start(problem),
            jac=True,
            method="BFGS",
            options={"maxiter": 5000, "gtol": 1e-9},
        )
    assert found.fun == pytest.approx(UNCONSTRAINED[name], rel=1e-7, abs=1e-9)


def test_constants_of_constraints_that_are_slack_at_the_minimum():
    """Problem 95 at its start, 0: the published right-hand sides, with the other sign."""
    problem = dl.problem("hs/hs095")
    sides = problem.function.values(packed_start(problem)[None])[0][1:]
    assert sides.tolist() == pytest.approx([-4.97, 1.88, 29.08, 78.02], rel=1e-15)

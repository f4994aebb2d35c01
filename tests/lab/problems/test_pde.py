"""Discretized equations tend to the differential equation, with the order of the scheme.

The expected values are those of the differential operator at a smooth function that satisfies the
boundary conditions, differentiated by SymPy.
"""

import numpy as np
import pytest
import sympy

import difflab as dl

x, y = sympy.symbols("x y")
PI = sympy.pi


def inner(n, length=1):
    """Points inside an interval whose ends are given."""
    return length * np.arange(1, n + 1) / (n + 1)


def periodic(n, length=1):
    return length * np.arange(n) / n


def second(u):
    return sympy.diff(u, x, 2)


SINE = sympy.sin(PI * x) / 2
WAVE = sympy.sin(2 * PI * x) / 2 + sympy.Rational(1, 4)
RIPPLE = sympy.sin(PI * x)  # of period 2
STEADY = 2 + sympy.sin(2 * PI * x)  # positive
EQUATIONS = {
    "allen-cahn": (periodic, WAVE, lambda u: second(u) / 1000 + u - u**3),
    "bratu": (inner, SINE, lambda u: second(u) + sympy.exp(u)),
    "burgers": (inner, SINE, lambda u: second(u) / 100 - u * sympy.diff(u, x)),
    "burgers-upwind": (periodic, STEADY, lambda u: -u * sympy.diff(u, x)),
    "fisher-kpp": (inner, SINE, lambda u: second(u) / 100 + u * (1 - u)),
    "korteweg-de-vries": (
        lambda n: periodic(n, 2),
        RIPPLE,
        lambda u: -u * sympy.diff(u, x) - sympy.Float("0.022") ** 2 * sympy.diff(u, x, 3),
    ),
    "porous-medium": (inner, SINE, lambda u: second(u**3)),
}
"""Points, a smooth function with the boundary values, and the time derivative or residual."""


def right_hand_side(name, *given):
    return np.asarray(dl.compile(dl.problem(f"pde/{name}").function)(*given))


def shrinks(errors, order):
    """Whether the error at 10 and 50 points falls as h to this power does."""
    return errors[1] < 1.6 * errors[0] / 5**order


@pytest.mark.parametrize("name", EQUATIONS)
def test_schemes_tend_to_their_equation(name):
    points, u, equation = EQUATIONS[name]
    state, slope = (sympy.lambdify(x, e, "numpy") for e in (u, equation(u)))
    errors = []
    for n in (10, 50):
        at = points(n)
        errors.append(np.max(np.abs(right_hand_side(f"{name}-{n}", state(at)) - slope(at))))
    assert shrinks(errors, 1 if name == "burgers-upwind" else 2), errors
    assert errors[1] < 0.1 * np.max(np.abs(slope(points(50))))


def test_burgers_looks_upwind_on_both_sides():
    u = np.array([0.5, -1.0, 2.0, -0.25, 0.75, -0.5, 1.0, 1.5, -2.0, 0.1])
    behind, ahead = (u - np.roll(u, 1)) * 10, (np.roll(u, -1) - u) * 10
    expected = -u * np.where(u > 0, behind, ahead)
    np.testing.assert_allclose(right_hand_side("burgers-upwind-10", u), expected, rtol=1e-12)


def test_brusselator_tends_to_its_equation():
    u, v = 1 + SINE, 3 - SINE / 2
    growth = 1 + u**2 * v - 4 * u + second(u) / 50, 3 * u - u**2 * v + second(v) / 50
    states = [sympy.lambdify(x, e, "numpy") for e in (u, v)]
    slopes = [sympy.lambdify(x, e, "numpy") for e in growth]
    errors = []
    for n in (10, 50):
        at = inner(n)
        found = right_hand_side(f"brusselator-1d-{n}", *(state(at) for state in states))
        expected = [slope(at) for slope in slopes]
        errors.append(np.max(np.abs(found.reshape(2, n) - expected)))
    assert shrinks(errors, 2), errors


def test_bratu_on_a_square_tends_to_its_equation():
    u = sympy.sin(PI * x) * sympy.sin(2 * PI * y)
    residual = sympy.diff(u, x, 2) + sympy.diff(u, y, 2) + 6 * sympy.exp(u)
    state, slope = (sympy.lambdify((x, y), e, "numpy") for e in (u, residual))
    errors = []
    for n in (4, 8):
        at = np.meshgrid(inner(n), inner(n), indexing="ij")
        found = right_hand_side(f"bratu-2d-{n}", state(*at)).reshape(n, n)
        errors.append(np.max(np.abs(found - slope(*at))))
    assert errors[1] < 1.3 * errors[0] * (5 / 9) ** 2, errors


def test_sine_gordon_tends_to_its_equation():
    h, n = 0.1, 50  # the distance is fixed, so the error is bounded rather than compared
    at = h * np.arange(1, n + 1)
    bump = sympy.sin(PI * x / (h * (n + 1)))
    slope = sympy.lambdify(x, second(bump) - sympy.sin(bump), "numpy")
    state = sympy.lambdify(x, bump, "numpy")
    np.testing.assert_allclose(
        right_hand_side("sine-gordon-50", state(at)), slope(at), atol=h**2 * 0.1
    )


@pytest.mark.parametrize("n", [10, 50])
def test_gray_and_scott_react_and_diffuse(n):
    """Diffusion multiplies a wave by 2 cos k - 2, on a grid of distance 1."""
    wave = 2 * np.pi * np.arange(n) / n
    u, v = 0.5 + 0.1 * np.cos(wave), 0.25 + 0.1 * np.sin(wave)
    turn = 2 * np.cos(wave[1]) - 2
    expected = [
        0.16 * turn * (u - 0.5) - u * v * v + 0.035 * (1 - u),
        0.08 * turn * (v - 0.25) + u * v * v - 0.1 * v,
    ]
    found = right_hand_side(f"gray-scott-{n}", u, v).reshape(2, n)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("n", [4, 8])
def test_area_of_planes_is_exact(n):
    at = np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, n), indexing="ij")
    found = right_hand_side(f"minimal-surface-{n}", 3 * at[0] - 2 * at[1] + 1)
    np.testing.assert_allclose(found, 14**0.5, rtol=1e-14)


def test_every_equation_is_here():
    named = {one.name.partition("/")[2].rstrip("0123456789-") for one in dl.problems(["pde"])}
    others = {"bratu-2d", "brusselator-1d", "gray-scott", "minimal-surface", "sine-gordon"}
    assert named == {*EQUATIONS, *others}

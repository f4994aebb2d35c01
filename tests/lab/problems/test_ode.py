"""Right-hand sides against published solutions, and against the models that they come from."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq, fsolve
from scipy.spatial.transform import Rotation

import difflab as dl


def right_hand_side(name):
    """Return the right-hand side as a function of one vector, its inputs in the file's order."""
    one = dl.problem(f"ode/{name}")
    compiled = dl.compile(one.function)
    sizes = [np.size(value) for value in one.start.values()]
    stops = np.cumsum(sizes)

    def evaluated(u):
        parts = np.split(np.asarray(u, float), stops[:-1])
        values = [
            part if np.ndim(value) else part[0]
            for part, value in zip(parts, one.start.values(), strict=True)
        ]
        return np.ravel(compiled(**dict(zip(one.start, values, strict=True))))

    return evaluated


def start(name):
    values = dl.problem(f"ode/{name}").start.values()
    return np.concatenate([np.ravel(np.asarray(value, float)) for value in values])


def jacobian(name, u, step=1e-6):
    rhs = right_hand_side(name)
    steps = step * np.eye(len(u))
    return np.stack([(rhs(u + e) - rhs(u - e)) / (2 * step) for e in steps], axis=1)


def solved(rhs, u, end, **options):
    found = solve_ivp(lambda t, u: rhs(u), (0, end), u, **{"rtol": 1e-10, "atol": 1e-14, **options})
    assert found.success
    return found.y[:, -1]


STIFF = {
    "robertson": ([1, 0, 0], 40, [7.158e-1, 9.185e-6, 2.842e-1]),
    "hires": (
        [1, 0, 0, 0, 0, 0, 0, 0.0057],
        321.8122,
        [
            0.7371312573325668e-3,
            0.1442485726316185e-3,
            0.5888729740967575e-4,
            0.1175651343283149e-2,
            0.2386356198831331e-2,
            0.6238968252742796e-2,
            0.2849998395185769e-2,
            0.2850001604814231e-2,
        ],
    ),
    "oregonator": (
        [1, 2, 3],
        360,
        [0.1000814870318523e1, 0.1228178521549917e4, 0.1320554942846706e3],
    ),
    "van-der-pol": ([2, 0], 2, [0.1706167732170483e1, -0.8928097010247975]),
    "e5": (
        [1.76e-3, 0, 0, 0],
        10,
        [
            1.7599259497677897058e-3,
            1.3846281519376516449e-11,
            7.6370038530073911180e-13,
            1.3082581134075777338e-11,
        ],
    ),
}
"""Initial state, end, and the state there: E. Hairer and G. Wanner's reference solutions, the Test
Set for Initial Value Problem Solvers, and LSODE's documentation for Robertson's reaction."""


@pytest.mark.parametrize("name", STIFF)
def test_stiff_problems_reach_the_published_state(name):
    u, end, published = STIFF[name]
    atol = 1e-24 if name == "e5" else 1e-13
    found = solved(right_hand_side(name), u, end, method="Radau", atol=atol, rtol=1e-8)
    np.testing.assert_allclose(found, published, rtol=2e-4 if name == "robertson" else 2e-5)


POLLUTION = {
    1: 0.5646255480022769e-1,
    2: 0.1342484130422339,
    3: 0.4139734331099427e-8,
    4: 0.5523140207484359e-2,
    5: 0.2018977262302196e-6,
    6: 0.1464541863493966e-6,
    7: 0.7784249118997964e-1,
    8: 0.3245075353396018,
    9: 0.7494013383880406e-2,
    10: 0.1622293157301561e-7,
    11: 0.1135863833257075e-7,
    12: 0.2230505975721359e-2,
    13: 0.2087162882798630e-3,
    14: 0.1396921016840158e-4,
    15: 0.8964884856898295e-2,
    16: 0.4352846369330103e-17,
    17: 0.6899219696263405e-2,
    18: 0.1007803037365946e-3,
    19: 0.1772146513969984e-5,
    20: 0.5682943292316392e-4,
}
"""The concentrations after 60 minutes, from the Test Set for Initial Value Problem Solvers."""


def test_pollution_reaches_the_published_concentrations():
    species = [int(name[1:]) - 1 for name in dl.problem("ode/pollution").start]
    rhs = right_hand_side("pollution")  # four species have no effect on others
    u = np.zeros(20)
    u[[1, 3, 6, 7, 8, 16]] = 0.2, 0.04, 0.1, 0.3, 0.01, 0.007
    found = solved(lambda u: rhs(u[species]), u, 60, method="Radau", rtol=1e-9, atol=1e-18)
    np.testing.assert_allclose(found, list(POLLUTION.values()), rtol=1e-5)


def test_pleiades_reaches_the_published_state():
    accelerations = right_hand_side("pleiades")
    x, y = [3, 3, -1, -3, 2, -2, 2], [3, -3, 2, 0, 0, -4, 4]
    u = np.array([*x, *y, 0, 0, 0, 0, 0, 1.75, -1.5, 0, 0, 0, -1.25, 1, 0, 0], float)
    found = solved(
        lambda u: np.concatenate([u[14:], accelerations(u[:14])]), u, 3, method="DOP853", rtol=1e-12
    )
    published = [
        0.3706139143970502,
        0.3237284092057233e1,
        -0.3222559032418324e1,
        0.6597091455775310,
        0.3425581707156584,
        0.1562172101400631e1,
        -0.7003092922212495,
        -0.3943437585517392e1,
        -0.3271380973972550e1,
        0.5225081843456543e1,
        -0.2590612434977470e1,
        0.1198213693392275e1,
        -0.2429682344935824,
        0.1091449240428980e1,
    ]
    np.testing.assert_allclose(found[:14], published, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "state", "period"),
    [
        ("arenstorf", [0.994, 0, 0, -2.00158510637908252240537862224], 17.0652165601579625588917),
        ("two-body", [0.4, 0, 0, 2.0], 2 * np.pi),
    ],
)
def test_orbits_close_after_the_published_period(name, state, period):
    found = solved(right_hand_side(name), state, period, method="DOP853", rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(found, state, atol=1e-3 if name == "arenstorf" else 1e-9)


def gradient(potential, q):
    """Complex steps: the potential's own derivative, without difflab."""
    steps = 1e-30j * np.eye(len(q))
    return np.array([potential(q + step).imag / 1e-30 for step in steps])


def springs(q):
    d = np.diff(np.concatenate([[0], q, [0]]))
    return np.sum(d**2 / 2 + 0.25 * d**3 / 3 + d**4 / 4)


def gravity(q):
    x, y = q[::2], q[1::2]
    return -sum(
        1 / np.sqrt((x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2) for i in range(3) for j in range(i)
    )


POTENTIALS = {
    "fermi-pasta-ulam-8": springs,
    "fermi-pasta-ulam-32": springs,
    "toda-10": lambda q: np.sum(np.exp(-np.diff(q))),
    "three-body": gravity,
}


@pytest.mark.parametrize("name", POTENTIALS)
def test_forces_are_those_of_the_potential(name):
    q = start(name)
    expected = -gradient(POTENTIALS[name], q)
    np.testing.assert_allclose(right_hand_side(name)(q), expected, atol=1e-13)


def test_hénon_heiles_is_its_hamiltonian():
    def energy(u):
        x, y, p, q = u
        return (p**2 + q**2 + x**2 + y**2) / 2 + x**2 * y - y**3 / 3

    u = start("henon-heiles")
    slopes = gradient(energy, u)
    found = right_hand_side("henon-heiles")(u)
    np.testing.assert_allclose(found, [*slopes[2:], *-slopes[:2]], rtol=1e-14)


def test_double_pendulum_solves_its_equations_of_motion():
    a, b, v, w = start("double-pendulum")
    mass = np.array([[2, np.cos(a - b)], [np.cos(a - b), 1]])
    force = [
        -np.sin(a - b) * w**2 - 2 * 9.81 * np.sin(a),
        np.sin(a - b) * v**2 - 9.81 * np.sin(b),
    ]
    expected = [v, w, *np.linalg.solve(mass, force)]
    np.testing.assert_allclose(right_hand_side("double-pendulum")([a, b, v, w]), expected)


def test_pole_on_a_cart_solves_its_equations_of_motion():
    speed, angle, turn, force = start("cart-pole")
    half, pole, both = 0.5, 0.1, 1.1  # metres, and kilograms
    swing = pole * half * np.cos(angle)
    mass = [[both, swing], [swing, pole * half**2 * 4 / 3]]
    push = [force + pole * half * turn**2 * np.sin(angle), pole * half * 9.8 * np.sin(angle)]
    x, a = np.linalg.solve(mass, push)
    found = right_hand_side("cart-pole")([speed, angle, turn, force])
    np.testing.assert_allclose(found, [speed, x, turn, a])


def test_rigid_body_is_eulers_equation():
    inertia = np.array([0.5, 2, 3])  # Hairer, Nørsett, Wanner
    y = start("rigid-body")
    expected = -np.cross(y, inertia * y) / inertia
    np.testing.assert_allclose(right_hand_side("rigid-body")(y), expected)


def test_quadcopter_turns_as_rotations_do():
    u = start("quadcopter")
    (roll, pitch, yaw), rates, lift, turning = u[:3], u[3:6], u[6], u[7:]
    found = right_hand_side("quadcopter")(u)
    attitude = Rotation.from_euler("ZYX", [yaw, pitch, roll])
    np.testing.assert_allclose(found[6:], attitude.apply([0, 0, lift]) - [0, 0, 9.81])
    step = 1e-6
    ahead = attitude * Rotation.from_rotvec(step * rates)
    behind = attitude * Rotation.from_rotvec(-step * rates)
    slopes = (ahead.as_euler("ZYX") - behind.as_euler("ZYX"))[::-1] / (2 * step)
    np.testing.assert_allclose(found[:3], slopes, rtol=1e-8)
    inertia = np.array([1, 1, 1.6])  # of which the ratios count
    gyroscopic = -np.cross(rates, inertia * rates) / inertia
    np.testing.assert_allclose(found[3:6], gyroscopic + [20, 20, 9] * turning)


def test_kuramoto_attracts_each_to_the_mean_field():
    a = start("kuramoto-10")
    speeds = [0.5, 1.1, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 1.1, 1.0]  # the file's own
    field = np.mean(np.exp(1j * a))
    expected = speeds + 2 * np.abs(field) * np.sin(np.angle(field) - a)
    np.testing.assert_allclose(right_hand_side("kuramoto-10")(a), expected)


REACTIONS = {
    "michaelis-menten": (
        [[-1, 1, 0], [-1, 1, 1], [1, -1, -1], [0, 0, 1]],
        lambda s, enzyme, c: [10 * enzyme * s, c, c],
    ),
    "sir": ([[-1, 0], [1, -1], [0, 1]], lambda s, i: [0.3 * s * i, 0.1 * i]),
    "seir": (
        [
            [1, -1, 0, 0, -1, 0, 0, 0],
            [0, 1, -1, 0, 0, -1, 0, 0],
            [0, 0, 1, -1, 0, 0, -1, 0],
            [0, 0, 0, 1, 0, 0, 0, -1],
        ],
        lambda s, x, i, r: [
            0.01,
            0.5 * s * i,
            0.2 * x,
            0.1 * i,
            0.01 * s,
            0.01 * x,
            0.01 * i,
            0.01 * r,
        ],
    ),
    "brusselator": (
        [[1, -1, 1, -1], [0, 1, -1, 0]],
        lambda x, y: [1, 3 * x, x**2 * y, x],
    ),
    "glycolysis": ([[0, 1, 1, -1], [1, -1, -1, 0]], lambda x, y: [0.6, 0.08 * y, x**2 * y, x]),
    "lotka-volterra": ([[1, -1, 0], [0, 1, -1]], lambda x, y: [1.5 * x, x * y, 3 * y]),
}
"""The stoichiometric matrix and the rate of each reaction."""


@pytest.mark.parametrize("name", REACTIONS)
def test_reactions_are_rates_times_stoichiometry(name):
    matrix, rates = REACTIONS[name]
    u = start(name)
    np.testing.assert_allclose(right_hand_side(name)(u), np.array(matrix) @ rates(*u), atol=1e-14)


EQUILIBRIA = {
    "lorenz": [[6 * 2**0.5, 6 * 2**0.5, 27], [-6 * 2**0.5, -6 * 2**0.5, 27], [0, 0, 0]],
    "brusselator": [[1, 3]],
    "glycolysis": [[0.6, 0.6 / (0.08 + 0.36)]],
    "lotka-volterra": [[3, 1.5], [0, 0]],
    "rossler": [
        [0.2 * z, -z, z]
        for z in np.roots([0.2, -5.7, 0.2])  # x = a z, y = -z: a z^2 - c z + b
    ],
    "lorenz-96-5": [[8] * 5],
    "lorenz-96-40": [[8] * 40],
    "predator-prey-holling": [[0.6, 1.28], [3, 0], [0, 0]],
}


@pytest.mark.parametrize("name", EQUILIBRIA)
def test_equilibria_are_those_of_algebra(name):
    for point in EQUILIBRIA[name]:
        np.testing.assert_allclose(right_hand_side(name)(np.array(point, float)), 0, atol=1e-12)


def test_duffing_is_driven_in_a_double_well():
    x, v, t = start("duffing")
    well = gradient(lambda q: (q[0] ** 2 - 1) ** 2 / 4, np.array([x]))[0]
    expected = [v, -well - 0.3 * v + 0.37 * np.cos(1.2 * t)]
    np.testing.assert_allclose(right_hand_side("duffing")([x, v, t]), expected)


def test_lorenz_leaves_the_origin_at_the_published_rates():
    """Sparrow (1982): -22.828, 11.828 and -8/3 for σ = 10, r = 28, b = 8/3."""
    found = np.linalg.eigvals(jacobian("lorenz", [0, 0, 0])).real
    np.testing.assert_allclose(np.sort(found), [-22.828, -8 / 3, 11.828], atol=1e-3)


def test_chua_has_its_three_slopes_and_equilibria():
    rhs = right_hand_side("chua")
    for x, slope in ((0.3, -1.143), (-5.0, -0.714), (5.0, -0.714)):
        np.testing.assert_allclose(
            jacobian("chua", [x, 0, 0])[0, 0], -15.6 * (1 + slope), rtol=1e-6
        )
    outer = (1.143 - 0.714) / (1 - 0.714)  # where f(x) = -x
    for x in (-outer, 0, outer):
        np.testing.assert_allclose(rhs([x, 0, -x]), 0, atol=1e-12)


@pytest.mark.parametrize("name", ["lorenz-84", "lorenz-96-5", "lorenz-96-40"])
def test_advection_conserves_energy(name):
    u = start(name)
    if name == "lorenz-84":  # a = 1/4, F = 8, G = 1
        gain = -(u[0] ** 2) / 4 - u[1] ** 2 - u[2] ** 2 + 2 * u[0] + u[1]
    else:
        gain = np.sum(8 * u - u**2)
    np.testing.assert_allclose(u @ right_hand_side(name)(u), gain)


def test_lorenz_96_has_the_published_growth_rates():
    """Lorenz, Emanuel (1998): at rest, wave k of 40 grows by F (cos 2πk/40 - cos 4πk/40) - 1."""
    wave = 2 * np.pi * np.arange(40) / 40
    expected = 8 * (np.cos(wave) - np.cos(2 * wave)) - 1
    found = np.linalg.eigvals(jacobian("lorenz-96-40", np.full(40, 8.0))).real
    np.testing.assert_allclose(np.sort(found), np.sort(expected), atol=1e-6)


def test_hodgkin_huxley_rests_at_its_potential():
    """At -65 mV the membrane rests without a current, m = 0.0529, h = 0.5961, n = 0.3177."""
    rest = [-65, 0.0529324852, 0.5961207536, 0.3176769140]
    found = right_hand_side("hodgkin-huxley")(rest)
    np.testing.assert_allclose(found, [10, 0, 0, 0], atol=5e-3)


def equilibrium(name, guess):
    found, _, reached, _ = fsolve(right_hand_side(name), guess, full_output=True)
    assert reached == 1
    return found


def test_morris_lecar_oscillates_near_the_published_current():
    """Rinzel, Ermentrout (1989): the rest loses its stability at a current of 93.86."""
    rhs = right_hand_side("morris-lecar")

    def growth(current):
        rest = fsolve(lambda u: np.add(rhs(u), [(current - 90) / 20, 0]), [-30, 0.1])
        return np.trace(jacobian("morris-lecar", rest))

    assert brentq(growth, 80, 110) == pytest.approx(93.86, abs=0.02)


def test_fitzhugh_nagumo_rests_where_its_cubic_says():
    cubic = [-1 / 3, 0, 1 - 1 / 0.8, 0.5 - 0.7 / 0.8]
    rest = equilibrium("fitzhugh-nagumo", [-1, 0])
    np.testing.assert_allclose(rest[1], (rest[0] + 0.7) / 0.8)
    np.testing.assert_allclose(np.polyval(cubic, rest[0]), 0, atol=1e-9)
    np.testing.assert_allclose(jacobian("fitzhugh-nagumo", rest)[1], [0.08, -0.064], atol=1e-8)


def test_goodwin_oscillates_as_its_secant_condition_says():
    """Equal rates: unstable where n z^n/(1 + z^n) exceeds 8 (Griffith 1968)."""
    z = brentq(lambda z: 1 - 1e-3 * z * (1 + z**10), 1, 5)
    gain = 10 * z**10 / (1 + z**10)
    turns = np.exp(1j * np.pi * np.array([1, 3, 5]) / 3)
    expected = 0.1 * (gain ** (1 / 3) * turns - 1)
    found = np.linalg.eigvals(jacobian("goodwin", [0.01 * z, 0.1 * z, z]))
    np.testing.assert_allclose(np.sort(found.real), np.sort(expected.real), atol=1e-6)
    assert gain > 8
    assert found.real.max() > 0


def test_repressilator_represses_in_a_cycle():
    """Elowitz, Leibler (2000): α = 216, α0 = 0.2, β = 5 and a Hill coefficient of 2."""
    rhs, u = right_hand_side("repressilator"), start("repressilator")
    messages, proteins = u[:3], u[3:]
    hill = 216 / (1 + np.roll(proteins, 1) ** 2) + 0.2
    np.testing.assert_allclose(rhs(u), [*(hill - messages), *(5 * (messages - proteins))])


def test_toggle_switch_has_two_states():
    """Gardner, Cantor, Collins (2000): α1 = 156.25, β = 2.5, α2 = 15.6, γ = 1."""
    high, low = (equilibrium("toggle-switch", guess) for guess in ([150, 0.1], [0.2, 13]))
    for u, v in (high, low):
        np.testing.assert_allclose([u * (1 + v**2.5), v * (1 + u)], [156.25, 15.6])
    assert high[0] > 100 > 1 > low[0]

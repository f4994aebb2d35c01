"""Every eval at small sizes against its definition: derivatives by complex steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.gradbench.tool import ba
from benchmarks.gradbench.tool.descent import GRADIENTS, argmax, argmin
from benchmarks.gradbench.tool.particle import miss
from benchmarks.gradbench.tool.protocol import functions
from benchmarks.gradbench.tool.repeats import compiled, repeated
from benchmarks.gradbench.tool.saddle import height
from tests.benchmarks.gradbench import golden

TOLERANCE = 1e-12


def answer(module: str, function: str, question: Any) -> Any:
    return repeated(functions(module)[function], question)["output"]


def close(found: Any, expected: Any, tolerance: float = TOLERANCE) -> None:
    """The largest difference is small beside the largest entry, as in the driver's strict check."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert np.max(np.abs(found - expected), initial=0.0) <= tolerance * np.max(np.abs(expected))


def test_hello() -> None:
    assert answer("hello", "square", -1.5) == 2.25
    assert answer("hello", "double", -1.5) == -3.0


@pytest.mark.parametrize("n", [2, 9, 64])
def test_llsq(rng: np.random.Generator, n: int) -> None:
    x = rng.random(7)
    question = {"x": x.tolist(), "n": n}
    close(answer("llsq", "primal", question), golden.llsq(x, n))
    slope = golden.derivative(lambda x: golden.llsq(x, n), x)
    close(answer("llsq", "gradient", question), slope)


def test_lse(rng: np.random.Generator) -> None:
    x = rng.random(1000)
    close(answer("lse", "primal", {"x": x.tolist()}), golden.lse(x))
    slope = golden.derivative(golden.lse, x)
    close(answer("lse", "gradient", {"x": x.tolist()}), slope)
    far = {"x": [1000.0, 1000.0]}
    assert answer("lse", "primal", far) == pytest.approx(1000 + np.log(2), rel=1e-15)
    assert answer("lse", "gradient", far) == [0.5, 0.5]


@pytest.mark.parametrize(("d", "k", "m", "gamma"), [(2, 3, 0, 1.0), (4, 2, 3, 0.7), (1, 1, 0, 1.0)])
def test_gmm(rng: np.random.Generator, d: int, k: int, m: int, gamma: float) -> None:
    shapes = {"alpha": (k,), "mu": (k, d), "q": (k, d), "l": (k, d * (d - 1) // 2)}
    values = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    x = rng.normal(size=(9, d))
    question = {name: value.tolist() for name, value in values.items()}
    question |= {"x": x.tolist(), "d": d, "k": k, "n": 9, "m": m, "gamma": gamma}
    close(answer("gmm", "objective", question), golden.gmm(*values.values(), x, gamma, m))
    found = answer("gmm", "jacobian", question)
    assert set(found) == set(shapes)
    for name, value in values.items():
        if value.size:
            rest = dict(values)

            def objective(value: Any, name: str = name, rest: Any = rest) -> Any:
                return golden.gmm(*(rest | {name: value}).values(), x, gamma, m)

            close(found[name], golden.derivative(objective, value))


def test_kmeans(rng: np.random.Generator) -> None:
    points = rng.random((50, 3))
    question = {"points": points.tolist(), "centroids": points[-6:].tolist()}
    distances = np.array([[np.sum((p - c) ** 2) for c in points[-6:]] for p in points])
    closest = np.argmin(distances, axis=1)
    close(answer("kmeans", "cost", question), np.sum(np.min(distances, axis=1)))
    means = [points[closest == j].mean(axis=0) for j in range(6)]
    close(answer("kmeans", "dir", question), points[-6:] - means)


def test_kmeans_where_every_point_is_a_centroid(rng: np.random.Generator) -> None:
    points = rng.random((20, 4)).tolist()
    question = {"points": points, "centroids": points}
    assert answer("kmeans", "cost", question) == 0
    assert np.all(np.array(answer("kmeans", "dir", question)) == 0)


@pytest.mark.parametrize("rotation", [(0.1, -0.4, 0.3), (0.0, 0.0, 0.0)])
def test_ba(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, rotation: tuple[float, ...]
) -> None:
    monkeypatch.setattr(ba, "PART", 4)
    camera = [*rotation, *rng.random(3), 1.7, *rng.random(2), 0.01, -0.02]
    point, feature, weight = [0.3, -0.2, 3.5], rng.random(2).tolist(), 0.6
    question = {"n": 2, "m": 3, "p": 7, "cam": camera, "x": point, "w": weight, "feat": feature}
    parameters = np.array([*camera, *point, weight])
    found = answer("ba", "objective", question)
    assert found["reproj_error"]["repeated"] == found["w_err"]["repeated"] == 7
    close(found["reproj_error"]["elements"], golden.reprojection(parameters, feature))
    assert found["w_err"]["element"] == pytest.approx(1 - weight**2, rel=1e-15)
    found = answer("ba", "jacobian", question)
    expected = golden.derivative(lambda x: golden.reprojection(x, feature), parameters)
    close(found["vals"][:-1], np.ravel(expected))
    assert found["vals"][-1] == -2 * weight
    own = [*range(11), 22, 23, 24, 31]  # camera 0, point 0 and weight 0 of 22 + 9 + 7 columns
    assert found["cols"] == [*own, *own, 37]
    assert found["rows"] == [*[*range(0, 210, 15), *range(210, 218)][:30], 217]


def hand_model(rng: np.random.Generator, mirrored: bool) -> dict[str, Any]:
    """A hand of the suite's 22 bones, 11 vertices and 4 triangles."""
    parents = [
        -1,
        *[0 if joint == 0 else 4 * finger + joint for finger in range(5) for joint in range(4)],
    ]
    parents.append(0)

    def frames() -> Any:
        found = np.tile(np.eye(4), (22, 1, 1))
        found[:, :3] += 0.3 * rng.normal(size=(22, 3, 4))
        return found.tolist()

    positions = np.concatenate([rng.normal(size=(11, 3)), np.ones((11, 1))], axis=1)
    return {
        "bone_names": [f"bone{i}" for i in range(22)],
        "parents": parents,
        "base_relatives": frames(),
        "inverse_base_absolutes": frames(),
        "base_positions": positions.tolist(),
        "weights": (rng.random((11, 22)) * (rng.random((11, 22)) < 0.3)).tolist(),
        "triangles": [[0, 1, 2], [2, 3, 4], [10, 9, 5], [7, 6, 5]],
        "is_mirrored": mirrored,
    }


@pytest.mark.parametrize(
    ("mirrored", "inside", "chosen"),
    [
        (False, True, [3, 0, 1, 3, 2]),
        (True, False, [10, 0, 4, 4, 7]),
        (True, True, [3, 0, 1, 3, 2, 1, 0, 2] * 4),  # so many that vertices are looked up
    ],
)
def test_ht(rng: np.random.Generator, mirrored: bool, inside: bool, chosen: list[int]) -> None:
    count = len(chosen)
    places = rng.random((count, 2)) / 2 if inside else np.zeros((0, 2))
    data = {"model": hand_model(rng, mirrored), "correspondences": chosen}
    data["points"] = rng.normal(size=(count, 3)).tolist()
    theta = rng.normal(size=26)
    question = {"theta": theta.tolist(), "data": data, "us": places.tolist()}
    close(answer("ht", "objective", question), golden.hand(theta, data, places))
    by_theta = golden.derivative(lambda theta: golden.hand(theta, data, places), theta)
    expected = np.asarray(by_theta)
    if inside:
        by_place = golden.derivative(lambda p: golden.hand(theta, data, p), places)
        own = [by_place[row, row // 3] for row in range(3 * count)]
        expected = np.concatenate([np.stack(own), expected], axis=1)
    close(answer("ht", "jacobian", question), expected)


def test_a_short_vector_is_no_rotation_of_the_hand(rng: np.random.Generator) -> None:
    data = {"model": hand_model(rng, mirrored=False), "correspondences": [1, 2]}
    data["points"] = [[0.0, 0.0, 0.0]] * 2
    theta = np.array([3e-5, 0.0, -4e-5, *rng.normal(size=23)])
    question = {"theta": theta.tolist(), "data": data, "us": []}
    still = {**question, "theta": [0.0, 0.0, 0.0, *theta[3:]]}
    assert answer("ht", "objective", question) == answer("ht", "objective", still)
    assert np.all(np.array(answer("ht", "jacobian", question))[:, :3] == 0)


@pytest.mark.parametrize("ell", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("module", ["det", "shared_det"])
def test_det(rng: np.random.Generator, ell: int, module: str) -> None:
    matrix = rng.random((ell, ell))
    question = {"A": matrix.ravel().tolist(), "ell": ell}
    found = {
        name: repeated(functions("det", {"det": module})[name], question)["output"]
        for name in ("primal", "gradient")
    }
    close(found["primal"], np.linalg.det(matrix), 1e-11)
    cofactors = np.linalg.det(matrix) * np.linalg.inv(matrix).T
    close(found["gradient"], cofactors.ravel(), 1e-11)


def test_det_of_a_singular_matrix() -> None:
    question = {"A": [1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 1.0, 1.0, 2.0], "ell": 3}
    assert answer("det", "primal", question) == 0
    assert answer("det", "gradient", question) == [2, 2, -2, -1, -1, 1, 0, 0, 0]


def test_lstm(rng: np.random.Generator) -> None:
    layers, b, c = 2, 3, 12
    values = [rng.random((2 * layers, 4 * b)), rng.random((3, b)), rng.random((2 * layers, b))]
    values.append(np.where(rng.random((c, b)) < 0.5, 0.0, 1.0))
    names = ("main_params", "extra_params", "state", "sequence")
    question = {name: value.tolist() for name, value in zip(names, values, strict=True)}
    close(answer("lstm", "objective", question), golden.lstm(*values))
    gates, ends, state, sequence = values
    slopes = [
        golden.derivative(lambda gates: golden.lstm(gates, ends, state, sequence), gates),
        golden.derivative(lambda ends: golden.lstm(gates, ends, state, sequence), ends),
    ]
    close(answer("lstm", "jacobian", question), np.concatenate([s.ravel() for s in slopes]))


def test_ode(rng: np.random.Generator) -> None:
    x = rng.random(6)
    question = {"x": x.tolist(), "s": 5}
    close(answer("ode", "primal", question), golden.ode(x, 5))
    slope = golden.derivative(lambda x: golden.ode(x, 5)[-1], x)
    close(answer("ode", "gradient", question), slope)


def at(f: Callable[..., Any], *arguments: Any) -> Any:
    """The value of a compiled function: NumPy takes minutes for the steps of these loops."""
    pytest.importorskip("llvmlite", reason="llvmlite is not installed")
    return compiled(f, *arguments, output=np.asarray).evaluate()


@pytest.mark.parametrize("inner", sorted(GRADIENTS))
def test_the_path_of_the_particle(inner: str) -> None:
    w, h = 0.3, 1e-6
    slope = (golden.particle(w + h) - golden.particle(w - h)) / (2 * h)

    def square(w: Any) -> Any:
        return miss(w, GRADIENTS[inner])

    assert at(square, w) == pytest.approx(golden.particle(w), rel=1e-12)
    for outer in GRADIENTS.values():
        assert at(outer(square), w) == pytest.approx(slope, rel=1e-6)


def plain_descent(
    f: Callable[[Any], float], slope: Callable[[Any], Any], x: Any
) -> tuple[Any, int]:
    """GradBench's descent as a Python loop, and how many steps it tries."""
    value, g, eta, taken, tried = f(x), slope(x), 1e-5, 0, 0
    while np.linalg.norm(g) > 1e-5:
        if taken == 10:
            eta, taken = 2 * eta, 0
            continue
        there = x - eta * g
        if np.linalg.norm(there - x) <= 1e-5:
            break
        tried += 1
        if f(there) < value:
            x, value, g, taken = there, f(there), slope(there), taken + 1
        else:
            eta, taken = eta / 2, 0
    return x, tried


@pytest.mark.parametrize("mode", sorted(GRADIENTS))
def test_the_descent(mode: str) -> None:
    scales = np.array([300.0, 2.0])

    def f(x: Any) -> Any:
        return np.sum(scales * x**2)

    start = np.array([1.0, -3.0])
    expected, tried = plain_descent(f, lambda x: 2 * scales * x, start)
    assert tried > 50
    close(at(lambda x: argmin(f, x, GRADIENTS[mode]), start), expected)
    close(at(lambda x: argmax(lambda x: -f(x), x, GRADIENTS[mode]), start), expected)


def test_the_surface_has_its_saddle_at_the_origin() -> None:
    assert height(np.array([3.0, 4.0]), np.array([1.0, 2.0])) == 20


@pytest.mark.parametrize("modes", ["rr", "ff", "fr", "rf"])
def test_the_published_answers_of_nested_descents(modes: str) -> None:
    """The constants that GradBench's evals `particle` and `saddle` compare with."""
    pytest.importorskip("llvmlite", reason="llvmlite is not installed")
    assert answer("particle", modes, {"w": 0.0}) == pytest.approx(0.2071918746486116, rel=1e-10)
    found = answer("saddle", modes, {"start": [1.0, 1.0]})
    assert found == pytest.approx([8.246324826140356e-06] * 4, rel=1e-10)

"""ADBench's objectives and Jacobians against the suite's published answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import difflab as dl
from benchmarks.adbench import hand
from benchmarks.adbench.answers import TOLERANCE, AdbenchAnswer, answered, difference, expected
from benchmarks.adbench.files import read_ba
from benchmarks.adbench.problems import PROBLEMS, AdbenchProblem, instances, load
from benchmarks.adbench.tools import TOOLS
from benchmarks.objectives import ba, gmm, lstm
from benchmarks.objectives.maths import difflab_maths

SHARED = Path(__file__).parents[4] / "shared" / "reference" / "adbench"
SMALL = ["gmm/test.txt", "gmm_1k/gmm_d2_K5.txt", "ba/test.txt"]
SMALL += ["hand/test.txt", "hand/hand_complicated.txt"]
LARGER = ["gmm_d2_K10", "gmm_d2_K25", "gmm_d2_K50", "gmm_d10_K5", "gmm_d10_K10"]


def computed(problem: AdbenchProblem, tool: str = "difflab") -> AdbenchAnswer:
    ready = TOOLS[tool].prepare(problem)
    return answered(problem, ready.objective(), ready.jacobian())


def misses(found: AdbenchAnswer, wanted: AdbenchAnswer) -> float:
    return max(map(difference, found, wanted))


@pytest.mark.parametrize("instance", SMALL)
def test_published_answers(data: Path, instance: str) -> None:
    known = expected(data, instance)
    assert known is not None
    assert misses(computed(load(data, instance)), known) < TOLERANCE


@pytest.mark.parametrize("name", LARGER)
def test_mixtures_that_are_not_kept_here(name: str) -> None:
    instance = f"gmm_1k/{name}.txt"
    if not (SHARED / instance).exists():
        pytest.skip(f"{instance} is not in the repository, and {SHARED} is not there")
    known = expected(SHARED, instance)
    assert known is not None
    assert misses(computed(load(SHARED, instance)), known) < TOLERANCE


def test_the_sequence_of_a_thousand_characters(data: Path) -> None:
    problem = load(data, "lstm/lstm_l2_c1024.txt")
    known = expected(data, "lstm/lstm_l2_c1024.txt")
    assert known is not None
    rest = problem.parts[0]
    text = dl.trace(lambda *given: lstm.loss(difflab_maths(), *given, *rest), *problem.parameters)
    value, gradient = dl.value_and_gradient(text)(*problem.parameters)
    assert misses(AdbenchAnswer(np.ravel(value), gradient), known) < TOLERANCE


def test_a_point_repeated_is_the_sum_over_blocks(data: Path, monkeypatch: Any) -> None:
    """The published answer for 2.5 million points is that of each point, and of the prior."""
    monkeypatch.setattr("benchmarks.adbench.problems.POINTS", 100_000)
    instance = "gmm_2.5M_replicated/gmm_d2_K5.txt"
    problem = load(data, instance)
    known = expected(data, instance)
    assert known is not None
    assert [len(part[0]) for part in problem.parts] == [100_000] * 25
    ready = TOOLS["difflab"].prepare(replace(problem, parts=problem.parts[:1]))
    found = answered(problem, ready.objective(), ready.jacobian())
    scaled = AdbenchAnswer(25.0 * found.objective, 25.0 * found.jacobian)
    assert misses(scaled, known) < TOLERANCE


def test_a_camera_that_is_not_turned(data: Path) -> None:
    """A rotation by nothing moves nothing, and its derivatives are finite."""
    given = read_ba(data / "ba" / "test.txt")
    camera = given.camera.copy()
    camera[:3] = 0.0
    arguments = (camera, given.point, np.float64(given.weight), given.feature)
    maths = difflab_maths()
    traced = dl.trace(lambda *values: ba.reprojection_error(maths, *values), *arguments)
    x, y, z = given.point - camera[3:6]
    r = (x * x + y * y) / z**2
    scale = camera[6] * (1 + camera[9] * r + camera[10] * r**2)
    wanted = np.array([x / z, y / z]) * scale + camera[7:9] - given.feature
    np.testing.assert_allclose(traced(*arguments), given.weight * wanted, rtol=1e-14)
    assert np.all(np.isfinite(dl.jacobian(traced)(*arguments)))


def test_a_mixture_of_one_gaussian_is_a_normal_density() -> None:
    """Without a prior's weight, the posterior of one standard normal is its log density."""
    x = np.array([[0.3, -1.2], [2.0, 0.5]])
    alpha, mu, q, below = np.array([0.7]), np.zeros((1, 2)), np.zeros((1, 2)), np.zeros((1, 1))
    value = gmm.log_posterior(difflab_maths(), (1.0, 0), alpha, mu, q, below, x, 0.0)
    assert value == pytest.approx(-0.5 * np.sum(x**2) - 2 * np.log(2 * np.pi), rel=1e-14)


def test_instances_are_found_by_problem(data: Path) -> None:
    assert instances(data, "lstm") == ["lstm/lstm_l2_c1024.txt"]
    assert instances(data, "hand")[:2] == ["hand/hand_complicated.txt", "hand/test.txt"]
    assert set(PROBLEMS) == {"gmm", "ba", "lstm", "hand"}
    with pytest.raises(dl.errors.InputError, match="no problem 'gnn'"):
        instances(data, "gnn")


def test_bones_that_bend_beside_bones_that_do_not_are_refused(data: Path) -> None:
    from benchmarks.adbench.files import read_hand_model

    model = read_hand_model(data / "hand" / "model")
    parents = list(model.parents)
    parents[2] = 0
    with pytest.raises(dl.errors.InputError, match="bend"):
        hand.Hand(model._replace(parents=tuple(parents)))


# PyTorch's forward mode loads rules that are written with what PyTorch itself deprecates.
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
@pytest.mark.parametrize("tool", ["autograd", "jax", "torch"])
@pytest.mark.parametrize("instance", SMALL)
def test_peers_agree(data: Path, tool: str, instance: str) -> None:
    pytest.importorskip(tool)
    known = expected(data, instance)
    assert known is not None
    assert misses(computed(load(data, instance), tool), known) < TOLERANCE


def test_a_difference_is_relative_to_both_and_infinite_for_nan() -> None:
    one = np.array([1.0])
    assert difference(1e6 * one, (1e6 + 1) * one) == pytest.approx(5e-7, rel=1e-6)
    assert difference(0.1 * one, 0.2 * one) == pytest.approx(0.1)
    assert difference(np.array([np.nan]), one) == np.inf
    assert difference(np.ones(2), one) == np.inf

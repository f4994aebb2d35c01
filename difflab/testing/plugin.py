"""The pytest plug-in: fixtures, the marker `gradients`, and a report of all checks.

pytest imports this module at every start, so whatever needs NumPy is imported on use.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from difflab.testing.suites.regression import GradientRegression


_MARKER = (
    "gradients(points, dtypes=('float64',), shape=(), between=(-1, 1)): run the test for every "
    "point and precision, as its argument `point`; `points` is a list of points, or how many "
    "random ones of this shape and range"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; that of pytest-regressions only where it does not add its own."""
    group = parser.getgroup("difflab", "derivatives checked by difflab")
    group.addoption(
        "--difflab-report", metavar="PAGE", help="write a page of all derivative checks"
    )
    if find_spec("pytest_regressions") is None:
        group.addoption(
            "--force-regen",
            action="store_true",
            help="store the results of regression fixtures anew; their tests then fail once",
        )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and, if requested, the report (not in the workers of pytest-xdist)."""
    config.addinivalue_line("markers", _MARKER)
    path = config.getoption("difflab_report", None)
    if path and not hasattr(config, "workerinput"):
        from difflab.testing.suites.check_report import CheckReport

        config.pluginmanager.register(CheckReport(path), "difflab-report")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make the cases of a test that is marked with `gradients`."""
    marker = metafunc.definition.get_closest_marker("gradients")
    if marker is not None:
        from difflab.testing.suites.marked_points import parametrize

        parametrize(metafunc, marker)


@pytest.fixture(name="check_gradient")
def check_gradient(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Compare a gradient with numeric differentiation: ``check_gradient(f, gradient, x)``.

    Every check is a property of its test, in JUnit's file too.

    See Also
    --------
    difflab.testing.check_gradient : what this fixture calls.
    """
    from difflab.testing import check_gradient as check
    from difflab.testing.suites.check_report import recorded

    return recorded(check, request.node.user_properties)


@pytest.fixture
def gradient_regression(request: pytest.FixtureRequest) -> GradientRegression:
    """Compare arrays with those that an earlier run stored: ``gradient_regression(arrays)``.

    See Also
    --------
    difflab.testing.suites.regression.GradientRegression : what this fixture returns.
    """
    from difflab.testing.suites.regression import GradientRegression, stored_at

    path: Path = stored_at(request.path, request.node.name)
    return GradientRegression(path, regenerate=bool(request.config.getoption("force_regen", False)))

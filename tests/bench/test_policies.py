"""The bench of checkpoint policies: predictions by hand, a measured row, and the picture."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from difflab.bench import policies as bench
from difflab.bench.policies import LIBRARIES, OWN, POLICIES, NetworkSize, predicted
from difflab.errors import DifflabError
from difflab.lab.sweep import SweepRow
from tests.bench.picture_checks import check_picture

SIZE = NetworkSize(64, 16, 3)
STATE = 8 * SIZE.rows * SIZE.columns
PRODUCT = SIZE.rows * SIZE.columns * (2 * SIZE.columns - 1)


def test_what_is_predicted_of_three_layers() -> None:
    """The reverse sweep of a layer reads its product, tanh, 3a, the sine and the exponential."""
    elements = SIZE.rows * SIZE.columns
    assert predicted("everything", SIZE) == predicted("none", SIZE) == (3 * 5 * STATE, 0)
    assert predicted("nothing", SIZE)[0] == 0
    again = predicted("nothing", SIZE)[1]
    assert again > 3 * PRODUCT
    assert predicted("dots", SIZE) == (3 * STATE, again - 3 * PRODUCT)
    assert predicted("save_only z,a", SIZE) == (6 * STATE, again - 3 * PRODUCT - 3 * elements)


@pytest.mark.parametrize("library", sorted(LIBRARIES))
def test_every_policy_has_the_gradient_of_no_policy(library: str) -> None:
    if library not in OWN and find_spec(library) is None:
        pytest.skip(f"needs {library}")
    expected = LIBRARIES["difflab"]("none", SIZE)()
    for policy in POLICIES[library]:
        assert LIBRARIES[library](policy, SIZE)() == pytest.approx(expected, rel=1e-11)


def test_another_gradient_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"total": 1.0, "peak": 1, "seconds": 1.0, "spread": 0.0}
    monkeypatch.setattr(bench, "_in_process", lambda *_: found)
    with pytest.raises(DifflabError, match="difflab gives another gradient under dots"):
        bench._measured("difflab", "dots", SIZE, 1.0)
    (row,) = {task.measure()["status"] for task in bench.tasks(SIZE)}
    assert row == "failed"


def test_a_row_is_measured() -> None:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("needs Linux")
    found = bench.measure("difflab", "dots", tuple(SIZE))
    assert found["total"] == pytest.approx(bench._expected(SIZE), rel=1e-11)
    assert found["seconds"] > 0


def test_the_picture() -> None:
    rows: list[SweepRow] = [
        {
            **SIZE._asdict(),
            "library": library,
            "policy": policy,
            "status": "ok",
            "message": "",
            "predicted_bytes": 10**6 * k,
            "recomputed": 10**6,
            "repetitions": 5,
            "peak_bytes": 10**6 * (3 + 2 * k + n),
            "seconds": 0.5 / (1 + k) + 0.1 * n,
        }
        for n, library in enumerate(LIBRARIES)
        for k, policy in enumerate(POLICIES[library])
    ]
    check_picture(bench.draw, rows)

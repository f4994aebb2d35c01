"""The target's array module: the strict stand-in here, CuPy where there is a GPU."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import standin_cuda


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The stand-in in CuPy's place."""
    return standin_cuda.installed(monkeypatch)


@pytest.fixture(params=["standin", pytest.param("cupy", marks=pytest.mark.gpu)])
def xp(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module whose arrays the target is given, and which can run kernels."""
    if request.param == "standin":
        if standin_cuda.COMPILER is None:
            pytest.skip("no C++ compiler to run kernels with")
        return standin_cuda.installed(monkeypatch)
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    try:
        cupy.zeros(1)
    except Exception as error:
        pytest.skip(f"no GPU that CuPy can use: {error}")
    return cupy

"""The environment of a measurement: versions, processor, threads, GPU.

Versions are read from the metadata of the installed packages, which does not import them.
"""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("numpy", "scipy", "sympy", "mpmath", "python-flint", "llvmlite")


def environment() -> dict[str, str | int | None]:
    """Return the environment that a measurement depends on, besides the code.

    Returns
    -------
    dict
        ``difflab``, ``python``, the packages' versions, ``system``, ``cpu``, ``threads`` (the
        processors this process may use) and ``gpu``; None for what is absent.

    Examples
    --------
    >>> sorted(environment())[:5]
    ['cpu', 'difflab', 'gpu', 'llvmlite', 'mpmath']
    """
    return dict(_collect())


@cache
def _collect() -> tuple[tuple[str, str | int | None], ...]:
    from difflab import __version__

    found: dict[str, str | int | None] = {
        "difflab": __version__,
        "python": platform.python_version(),
    }
    found.update((package, package_version(package)) for package in _PACKAGES)
    found.update(
        system=f"{platform.system()} {platform.machine()}",
        cpu=_cpu(),
        threads=_threads(),
        gpu=_gpu(),
    )
    return tuple(found.items())


def now() -> str:
    """Return the current time in UTC, in ISO format, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@cache
def package_version(package: str) -> str | None:
    """Return the version of an installed package, or None.

    Examples
    --------
    >>> package_version("no-such-package") is None
    True
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu() -> str | None:
    """Return the processor's name; `platform` reports it on few systems only."""
    return _field(Path("/proc/cpuinfo"), "model name") or platform.processor() or None


def _threads() -> int | None:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _gpu() -> str | None:
    """Return the first NVIDIA GPU that the driver lists; running nvidia-smi takes a second."""
    for information in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        return _field(information, "Model")
    return None


def _field(path: Path, name: str) -> str | None:
    """Return the first ``name : value`` of a kernel file, or None."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and key.strip() == name:
            return value.strip()
    return None

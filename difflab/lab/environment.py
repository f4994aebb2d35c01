"""The environment of a measurement: versions, hashes of sources, processor, threads, GPU.

Versions are read from the metadata of the installed packages, which does not import them.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.machinery import all_suffixes
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from difflab.errors import printable
from difflab.methods.registry import entry_point

_PACKAGES = ("numpy", "scipy", "sympy", "mpmath", "python-flint", "llvmlite")
_CODE = tuple(suffix for suffix in all_suffixes() if suffix != ".pyc")
_DIGITS = 12


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

    entries: dict[str, str | int | None] = {
        "difflab": __version__,
        "python": platform.python_version(),
    }
    entries.update((package, package_version(package)) for package in _PACKAGES)
    entries.update(
        system=f"{platform.system()} {platform.machine()}",
        cpu=_cpu(),
        threads=_threads(),
        gpu=_gpu(),
    )
    return tuple(entries.items())


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


def packages(method: object) -> list[str]:
    """Return the versions of the packages that a method consists of, besides difflab.

    These are the distributions listed in its attribute `packages` and, for a plug-in, its own
    distribution with a hash of its source. ``"unusable"`` is appended if the method cannot run,
    since that may be fixed without a new version.

    Examples
    --------
    >>> from difflab.methods.registry import find
    >>> packages(find("reverse"))
    []
    >>> [text.split()[0] for text in packages(find("symbolic"))]
    ['sympy']
    """
    named = getattr(method, "packages", ())
    entries = versions(named if isinstance(named, tuple) else ())
    name = getattr(method, "name", None)
    entry = entry_point(name) if isinstance(name, str) else None
    module = type(method).__module__ if entry is None else entry.module
    dist = None if entry is None else entry.dist
    entries += sources(module, None if dist is None else f"{dist.name} {dist.version}")
    missing = getattr(method, "missing", None)
    if callable(missing) and missing() is not None:
        entries.append("unusable")
    return entries


def sources(module: str, release: str | None = None) -> list[str]:
    """Return the name of a module outside of difflab with a hash of its source."""
    if module.partition(".")[0] == "difflab":
        return []
    return [printable(f"{release or module} (source {_source_hash(module)})")]


def versions(names: Iterable[object]) -> list[str]:
    """Return name and version of the installed distributions among `names`."""
    pairs = ((str(name), package_version(str(name))) for name in names)
    return [f"{name} {version}" for name, version in pairs if version is not None]


@cache
def own_code() -> str:
    """Return a hash of difflab's files."""
    import difflab

    return _hash([Path(folder) for folder in difflab.__path__], every=True)


def _source_hash(module: str) -> str:
    """Return a hash of the package that contains a module, or of a single module."""
    roots = list(_roots(module.partition(".")[0])) or list(_roots(module))
    return _hash(roots) if roots else "unknown"


def _roots(module: str) -> Iterator[Path]:
    """Yield the folders of a package, or the file of a module."""
    try:
        spec = getattr(sys.modules.get(module), "__spec__", None) or find_spec(module)
    except (ImportError, AttributeError, ValueError):  # raised by a broken package
        return
    if spec is None:
        return
    if spec.submodule_search_locations is not None:
        yield from map(Path, spec.submodule_search_locations)
    elif spec.has_location and spec.origin is not None:
        yield Path(spec.origin)


def _hash(roots: Sequence[Path], *, every: bool = False) -> str:
    """Return a hash of the names and contents of modules, or of `every` file."""
    digest = sha256()
    for root in roots:
        for path in _files(root):
            if every or path.endswith(_CODE):
                digest.update(os.path.relpath(path, root).encode("utf-8", "surrogatepass"))
                try:
                    digest.update(sha256(Path(path).read_bytes()).digest())
                except OSError:  # an unreadable file was not executed
                    continue
    return digest.hexdigest()[:_DIGITS]


def _files(root: Path) -> list[str]:
    """Return the sorted files of a folder, without Python's bytecode caches."""
    if root.is_file():
        return [str(root)]
    paths: list[str] = []
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if name != "__pycache__"]
        paths += [os.path.join(folder, name) for name in names]  # noqa: PTH118 - 10 × faster
    return sorted(paths)

"""Packages that the tests can do without: those that only other extras than ``test`` install.

What is optional follows from `pyproject.toml`. An example of a docstring or of the documentation
that needs such a package is skipped where it is missing, with the command that installs it; pytest
loads this module as a plug-in (``-p``), since docstrings are collected outside of ``tests/``.
"""

from __future__ import annotations

import doctest
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from difflab.errors import MissingDependencyError

__all__ = ["needed", "required_modules"]

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
BY_USERS = ("pandas",)
"""Packages that examples use and no extra installs, since difflab imports none of them."""


@cache
def extras() -> dict[str, list[Requirement]]:
    """Return the requirements of every extra; those of each installation are the extra ''."""
    project = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
    listed = {"": project["dependencies"], **project["optional-dependencies"]}
    parsed = {extra: list(map(Requirement, texts)) for extra, texts in listed.items()}
    parsed.pop("all")  # of other extras
    return parsed


@cache
def required_modules(extra: str = "test") -> frozenset[str]:
    """Return the modules of all packages that an extra installs, indirect ones too."""
    names: set[str] = set()
    waiting = [*extras()[""], *extras()[extra]]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in names:
            continue
        names.add(name)
        try:
            further = map(Requirement, metadata.requires(name) or ())
        except metadata.PackageNotFoundError:  # of another platform
            continue
        chosen = requirement.extras or {""}
        waiting += [
            each
            for each in further
            if each.marker is None or any(each.marker.evaluate({"extra": e}) for e in chosen)
        ]
    return frozenset(
        module
        for module, owners in metadata.packages_distributions().items()
        if names & set(map(canonicalize_name, owners))
    )


def needed(error: BaseException | None) -> str:
    """Return the reason to skip an example that ended with `error`; empty if there is none."""
    if isinstance(error, MissingDependencyError):
        return "" if error.fault else _command(error.package)
    if isinstance(error, ModuleNotFoundError) and error.name:
        return _command(error.name.partition(".")[0])
    return ""


def _command(package: str) -> str:
    """Say how to install an optional package; empty if it is none."""
    # A distribution may have a suffix that its module has not, as cupy-cuda12x.
    name = re.compile(rf"{re.escape(canonicalize_name(package))}(-.*)?")
    offering = [
        extra
        for extra, requirements in extras().items()
        if any(name.fullmatch(canonicalize_name(each.name)) for each in requirements)
    ]
    if not offering and package in BY_USERS:
        return f"needs {package}: pip install {package}"
    if not offering or {"", "test"} & set(offering):
        return ""
    return f"needs {package}: pip install 'difflab[{offering[0]}]'"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Skip a docstring example if a package that it needs is optional and missing."""
    try:
        return (yield)
    except doctest.UnexpectedException as failure:
        reason = needed(failure.exc_info[1])
        if not reason:
            raise
    pytest.skip(reason)

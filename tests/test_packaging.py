"""What is installed: the public names, what they load, the entry points, the metadata."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import difflab
from tests.support.rows import for_each

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "difflab"
HEAVY = ("numpy", "scipy", "sympy", "mpmath", "matplotlib", "flint")

# Where the name to import is not the name to install.
DISTRIBUTION = {
    "cupy": "cupy-cuda12x",
    "enzyme_ad": "enzyme-ad",
    "symb_anafis": "symb-anafis",
    "tvm": "apache-tvm",
    "warp": "warp-lang",
}


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def loaded_by(code: str) -> set[str]:
    """Return which of the heavy packages a new interpreter has loaded after `code`."""
    done = run("-c", f"{code}\nimport sys\nprint(*set({HEAVY!r}) & sys.modules.keys())")
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def requirement_names(requirements: list[str]) -> set[str]:
    names = (requirement.split(";")[0].strip() for requirement in requirements)
    return {name.split("[")[0].split(">")[0].split("=")[0].strip() for name in names}


# --- the public names ---------------------------------------------------------------------------


@for_each("name", difflab.__all__)
def test_every_public_name_resolves(name):
    assert getattr(difflab, name) is not None


def test_dir_shows_the_public_names():
    assert set(difflab.__all__) <= set(dir(difflab))


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'gradiant'"):
        _ = difflab.gradiant


def test_type_checkers_see_every_public_name():
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    guarded = [node for node in tree.body if isinstance(node, ast.If)]
    imported = {
        alias.asname or alias.name
        for node in ast.walk(guarded[0])
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assigned = {node.targets[0].id: node.value.id for node in guarded[0].body[-1:]}
    assert assigned == {"methods": "describe"}
    imported = imported - {*assigned.values()} | {*assigned}
    assert imported == set(difflab.__all__) - {"__version__"}


def test_methods_is_a_function_and_a_package():
    module = importlib.import_module("difflab.methods.registry")
    assert difflab.methods() is not None
    assert difflab.methods.registry is module


# --- what is loaded -----------------------------------------------------------------------------


def test_importing_difflab_loads_nothing_heavy():
    assert loaded_by("import difflab") == set()


def test_the_pytest_plugin_loads_nothing_heavy():
    assert loaded_by("import difflab.testing.plugin") == set()


def test_help_loads_nothing_heavy():
    code = "import sys; sys.argv = ['difflab', '--help']\nfrom difflab.cli import main\n"
    code += "import contextlib, io\n"
    code += "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
    assert loaded_by(code + "    main()") == set()


@pytest.mark.parametrize("launcher", [["-m", "difflab"], ["cli.py"]])
def test_each_launcher_starts_the_command(launcher):
    done = run(*launcher, "--help")
    assert done.returncode == 0, done.stderr
    assert "compare" in done.stdout


# --- the metadata -------------------------------------------------------------------------------


def test_every_import_is_declared(project):
    extras = project["optional-dependencies"]
    declared = requirement_names(project["dependencies"])
    for requirements in extras.values():
        declared |= requirement_names(requirements)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for top in {name.split(".")[0] for name in names} - {"difflab"}:
                known = top in sys.stdlib_module_names or DISTRIBUTION.get(top, top) in declared
                assert known, f"{path.relative_to(ROOT)} imports {top}, which is not declared"


def test_all_holds_every_extra_for_users(project):
    extras = project["optional-dependencies"]
    assert extras["all"] == ["difflab[native,gpu,dask,large,onnx,peers,web]"]
    assert set(extras["parquet"]) <= set(extras["large"])
    # Large, new, or at odds with others.
    alone = {"enzyme-ad", "pytensor", "symforce", "tensorflow", "taichi", "tvm", "warp", "advect"}
    assert alone <= set(extras)


def test_entry_points_lead_somewhere(project):
    targets = list(project["scripts"].values())
    for group in project["entry-points"].values():
        targets += group.values()
    for target in targets:
        module, _, attribute = target.partition(":")
        found = importlib.import_module(module)
        assert not attribute or callable(getattr(found, attribute))


def test_the_installed_version_is_this_one():
    try:
        installed = metadata.version("difflab")
    except metadata.PackageNotFoundError:
        pytest.skip("runs from a checkout that is not installed")
    assert installed == difflab.__version__


def test_the_changelog_knows_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{difflab.__version__}]" in changelog


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").is_file()

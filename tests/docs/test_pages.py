"""The documentation is run: the examples of every page, its commands, its links.

Examples and commands are run as `tests.support.documents` says. The tables of the functions of the
language and of the conventions at kinks are those of the table of primitives, and the reference
names every public object.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import difflab
import difflab.arrays
import difflab.eager
import difflab.nn
import difflab.optim
import difflab.testing
import difflab.testing.strategies
from difflab.language.calls import CALLS
from difflab.primitives import TABLE
from tests.support.documents import (
    ROOT,
    Session,
    blocks,
    links,
    matches,
    printed,
    python_failures,
    sessions,
    write_files,
)
from tests.support.optional import required_modules

FOLDER = ROOT / "docs"
# The examples have a test of their own, which runs them in their folder.
PAGES = sorted(
    path.relative_to(FOLDER).with_suffix("").as_posix()
    for path in FOLDER.rglob("*.md")
    if path.parent.name not in ("examples", "_build")
)
# The pages of users have a test of their own, which runs each from its first block to its last.
SEPARATE = [page for page in PAGES if not page.startswith("users/")]
SESSIONS = [
    pytest.param(page, session, id=f"{page}, line {session.line}: {session.command}")
    for page in SEPARATE
    for session in sessions((FOLDER / f"{page}.md").read_text("utf-8"))
]


ALL = sorted(
    path.relative_to(FOLDER).with_suffix("").as_posix()
    for path in FOLDER.rglob("*.md")
    if path.parent.name != "_build"
)
BARE = ("contributing",)  # includes another file
WIDEST = 88
"""Characters of a line of code that fit beside the contents on a wide screen."""

OWNERS = {
    "difflab": difflab,
    "difflab.arrays": difflab.arrays,
    "difflab.eager": difflab.eager,
    "difflab.nn": difflab.nn,
    "difflab.nn.functional": difflab.nn.functional,
    "difflab.optim": difflab.optim,
    "difflab.random": difflab.random,
    "difflab.testing": difflab.testing,
}
ELSEWHERE = ("__version__", "Axis", "DifflabError")


def text_of(page: str) -> str:
    return (FOLDER / f"{page}.md").read_text("utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    known = set(sys.modules)
    yield tmp_path
    # Pages call their files by the same names.
    for name in set(sys.modules) - known:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.parametrize("page", [page for page in SEPARATE if ">>>" in text_of(page)])
def test_python_examples_say_the_truth(page: str, folder: Path) -> None:
    write_files(text_of(page), folder)
    failures = python_failures(text_of(page), f"{page}.md")
    assert not failures, failures


@pytest.mark.parametrize(("page", "session"), SESSIONS)
def test_commands_print_what_is_shown(page: str, session: Session, folder: Path) -> None:
    write_files(text_of(page), folder)
    actual = printed(session, folder)
    assert matches(session.output, actual), actual


@pytest.mark.parametrize("page", ALL)
def test_commands_fit_beside_the_contents(page: str) -> None:
    shell = [block for block in blocks(text_of(page)) if block.language in ("sh", "console")]
    code = "\n".join(block.text for block in shell)
    commands = re.findall(r"^(?:\$ |difflab )[^#\n]*", code, re.MULTILINE)
    assert max(map(len, commands), default=0) <= WIDEST


def test_a_command_goes_on_after_a_backslash() -> None:
    shown = "```console\n$ difflab a --b \\\n    --c d; echo $?\nprinted \\\n0\n```\n"
    (session,) = sessions(shown)
    assert session.command == "difflab a --b --c d; echo $?"
    assert session.output == "printed \\\n0\n"


def test_the_tutorial_shows_the_outputs_that_it_explains() -> None:
    hidden = [
        before
        for before, line in pairwise(text_of("tutorial").splitlines())
        if line.strip() == "..." and "Traceback" not in before
    ]
    assert hidden == []


@pytest.mark.parametrize("folder", ["how-to", "reference", "explanation"])
def test_an_index_has_a_line_for_each_page(folder: str) -> None:
    index = text_of(f"{folder}/index")
    for page in PAGES:
        if page.startswith(f"{folder}/") and not page.endswith("/index"):
            name = page.rpartition("/")[2]
            assert re.search(rf"^\| \[.+\]\({name}\.md\) \| .{{10,}} \|$", index, re.MULTILINE), (
                name
            )


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page: str) -> None:
    for target in links(text_of(page)):
        assert ((FOLDER / page).parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES)
def test_pages_are_in_the_contents(page: str) -> None:
    """Every folder's index lists its pages."""
    index = "index" if "/" not in page or page.endswith("/index") else "/index"
    if index == "index":
        assert page.endswith("index") or f"\n{page}\n" in text_of("index")
    else:
        folder, _, name = page.rpartition("/")
        assert f"\n{name}\n" in text_of(f"{folder}/index")


@pytest.mark.parametrize("page", [path for path in ALL if path not in BARE])
def test_the_first_paragraph_says_what_one_gets(page: str) -> None:
    first = text_of(page).split("\n\n")[1]
    assert re.match(r"[\w`\[*(]", first), first


def test_every_picture_of_the_gallery_is_shown() -> None:
    pictures = {path.resolve() for path in (ROOT / "reports" / "gallery").rglob("*.svg")}
    shown = {(FOLDER / target).resolve() for target in links(text_of("gallery"))}
    assert pictures <= shown


def test_conventions_are_those_of_the_table() -> None:
    spellings: dict[str, list[str]] = {}
    for row in TABLE.values():
        if row.convention:
            spelling = row.names[0] if row.names else row.infix or row.name
            spellings.setdefault(row.convention, []).append(f"`{spelling}`")
    expected = [f"| {', '.join(names)} | {text} |" for text, names in spellings.items()]
    page = text_of("explanation/conventions")
    start = page.index("| function | convention |")
    assert page[start : page.index("\n\n", start)].splitlines()[2:] == expected


def test_every_function_of_the_language_is_named() -> None:
    named = set(re.findall(r"\w+", text_of("reference/language")))
    # The second spelling of a function that has a short one need not be named.
    assert {row.names[0] for row in TABLE.values() if row.names} | set(CALLS) <= named


def test_pages_install_difflab_from_a_clone_until_there_is_a_release() -> None:
    """An extra can be installed by name where difflab is installed, not difflab itself."""
    installed = re.compile(r"pip install (?:-\S+ )*difflab\b|activate && pip install '?difflab")
    pages = [ROOT / "README.md", *(FOLDER / f"{page}.md" for page in ALL)]
    assert not [path.name for path in pages if installed.search(path.read_text("utf-8"))]


def listed_objects() -> set[str]:
    """Return the names that the pages of the reference document."""
    reference = "\n".join(text_of(page) for page in PAGES if page.startswith("reference/"))
    return set(re.findall(r"\.\. auto(?:function|class|module|data):: ([\w.]+)", reference))


def test_the_extra_docs_installs_what_documented_modules_import() -> None:
    modules = [sys.modules[name] for name in listed_objects() if name in sys.modules]
    assert difflab.testing.strategies in modules
    known = {*sys.stdlib_module_names, "difflab", *required_modules("docs")}
    for module in modules:
        for node in ast.parse(inspect.getsource(module)).body:
            if isinstance(node, ast.ImportFrom):
                assert (node.module or "").partition(".")[0] in known, module.__name__
            elif isinstance(node, ast.Import):
                assert {alias.name.partition(".")[0] for alias in node.names} <= known


def test_the_reference_has_every_public_name() -> None:
    listed = listed_objects()
    for module in (
        difflab,
        difflab.arrays,
        difflab.eager,
        difflab.nn,
        difflab.nn.functional,
        difflab.optim,
        difflab.random,
        difflab.testing,
        difflab.testing.strategies,
    ):
        if module.__name__ in listed:  # with all its members
            continue
        for name in module.__all__:
            if inspect.ismodule(getattr(module, name)) or name in ELSEWHERE:
                continue
            same = {
                f"{path}.{name}"
                for path, owner in OWNERS.items()
                if getattr(owner, name, None) is getattr(module, name)
            }
            assert same & listed, name

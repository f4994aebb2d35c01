"""An option of a comparison is declared once: functions, documentation and command have it."""

from __future__ import annotations

import inspect
import re
from typing import Annotated, Any, TypedDict, Unpack, get_args, get_overloads, get_type_hints

import pytest
from typer.testing import CliRunner

import difflab
from difflab.cli.app import app
from difflab.lab.compare import compare
from difflab.lab.domain.compare import compare_domain
from difflab.lab.options import CompareOptions, DomainOptions, Option, declared, stated

AT_A_POINT, OVER = declared(CompareOptions), declared(DomainOptions)
ALL = AT_A_POINT | OVER


@pytest.mark.parametrize("name", ALL)
def test_every_signature_has_an_option_with_its_default(name: str) -> None:
    default = ALL[name][1].default
    assert inspect.signature(difflab.compare).parameters[name].default == default
    for function, known in ((compare, AT_A_POINT), (compare_domain, OVER)):
        found = inspect.signature(function).parameters
        assert (name in found) == (name in known)
        if name in known:
            assert found[name].default == default
    assert re.search(rf"^{name} : ", inspect.getdoc(difflab.compare) or "", re.M)


def test_the_overloads_take_the_declarations() -> None:
    from difflab.report.comparison import result

    names = {**vars(result), "DomainResult": Any}
    found = []
    for each in get_overloads(difflab.compare):
        hints = get_type_hints(each, globalns=names)
        found.append(get_args(hints["options"])[0])
    assert found == [CompareOptions, CompareOptions, DomainOptions]


def test_the_command_has_every_option_that_has_a_help() -> None:
    page = CliRunner().invoke(app, ["compare", "--help"], terminal_width=200).output
    for name, (kind, option) in ALL.items():
        form = f"--no-{name}" if kind is bool else f"--{name}"
        assert bool(re.search(rf"^ +{form} .*{re.escape(option.help)}", page, re.M)) == bool(
            option.help
        )
        if option.help and kind in (int, float, str) and name in AT_A_POINT:
            assert re.search(rf"{form} .*default: {option.default}\b", page)


class _Options(TypedDict, total=False):
    order: Annotated[int, Option(1)]
    name: Annotated[str, Option("a")]


@stated(_Options)
def _stated(x: float, *, last: bool = False, **options: Unpack[_Options]) -> Any:
    """Return what it is given."""
    return x, last, options


def test_defaults_come_from_the_declaration_and_other_names_are_refused() -> None:
    assert _stated(2.0, name="b") == (2.0, False, {"order": 1, "name": "b"})
    assert list(inspect.signature(_stated).parameters) == ["x", "order", "name", "last"]
    for wrong in ({"nme": 1}, {"options": {}}):
        with pytest.raises(TypeError, match=r"_stated\(\) got an unexpected keyword argument"):
            _stated(2.0, **wrong)
    with pytest.raises(TypeError, match=r"_stated\(\) missing a required argument: 'x'"):
        _stated()


class _Seen(Exception):
    """What a comparison was called with."""


@pytest.mark.parametrize(
    ("function", "arguments", "wanted"),
    [
        ("difflab.lab.compare.compare", [], {"timing": True, "verify": True, "methods": None}),
        (
            "difflab.lab.compare.compare",
            ["--no-timing", "--no-verify", "--methods", "a, b", "--order", "2", "--seed", "3"],
            {"timing": False, "verify": False, "methods": ["a", "b"], "order": 2, "seed": 3},
        ),
        (
            "difflab.lab.domain.compare.compare_domain",
            ["--over", "x=1:2", "--points", "7", "--scale", "x=log", "--target", "numpy"],
            {"points": 7, "scale": {"x": "log"}, "target": "numpy", "timeout": 10.0},
        ),
    ],
)
def test_the_command_passes_options_as_the_functions_take_them(
    function: str, arguments: list[str], wanted: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def seen(*_: Any, **given: Any) -> Any:
        raise _Seen(given)

    monkeypatch.setattr(function, seen)
    found = CliRunner().invoke(app, ["compare", "x^2", *arguments]).exception
    assert isinstance(found, _Seen)
    (given,) = found.args
    assert {name: given[name] for name in wanted} == wanted
    assert given.keys() & ALL.keys() <= (OVER if "domain" in function else AT_A_POINT).keys()

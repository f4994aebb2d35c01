"""Every public function with arguments that make no sense: what is raised is difflab's own.

The exception is Python's TypeError about the number or names of arguments. Python code that a user
gives is not walked with arguments that it cannot take: its errors are its own.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab import arrays

HOSTILE: tuple[Any, ...] = (
    *(None, "a", 3, -1, 0, 1.5, float("nan"), object(), b"x", True, 10**30, 2**40, -(2**40)),
    *([], {}, [1, [2]], (1, 2), [None], ["a", "b"], {1: 2}, range(3)),
    *(np.ones((2, 3)), np.ones(0), np.array("a"), np.ones(2) * 1j, np.array([None])),
    *(dl.parse("x^2"), dl.tensor([1.0, 2.0])),
)
SETTINGS: tuple[Any, ...] = tuple(value for value in HOSTILE if not isinstance(value, dl.Function))
PYTHONS = ("positional argument", "unexpected keyword", "multiple values", "required positional")
DOMAIN = {"x": (1.0, 2.0), "y": (1.0, 2.0)}
NEEDED = {"cheapest_dtypes": partial(dl.cheapest_dtypes, over=DOMAIN, tolerance=1e-2)}
"""Functions with arguments that have no default."""
GOOD = (np.ones(3), np.eye(3), np.ones((1, 4, 4)), 1.0)
PAIRS = ((np.ones((1, 4, 4)), np.ones((1, 1, 2, 2))), (np.eye(3), np.ones(3)))
Calls = Iterator[tuple[tuple[Any, ...], dict[str, Any]]]


def requires_difflabs(function: Callable[..., Any], calls: Calls) -> None:
    """Call a function, and collect whatever is raised that is not difflab's."""
    foreign = []
    for args, kwargs in calls:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                function(*args, **kwargs)
        except dl.DifflabError:
            pass
        except Exception as error:
            if not (type(error) is TypeError and any(said in str(error) for said in PYTHONS)):
                foreign.append((args, kwargs, error))
    assert not foreign, f"{len(foreign)} raw errors, the first: {foreign[0]}"


def named(function: Callable[..., Any]) -> list[str]:
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    given = inspect.signature(function).parameters.values()
    return [p.name for p in given if p.kind in kinds]


def calls_of_arrays(function: Callable[..., Any]) -> Calls:
    names = named(function)
    for value in HOSTILE:
        yield (value,), {}
        yield (value, value), {}
        for good in GOOD:
            yield (good, value), {}
            yield (value, good), {}
            for name in names[1:]:
                yield (good,), {name: value}
        for pair in PAIRS:
            yield (*pair, value), {}
            for name in names[2:]:
                yield pair, {name: value}
        yield ("ij,jk->ik", value, GOOD[1]), {}
        yield ([GOOD[0], GOOD[0]], value), {}


@pytest.mark.parametrize("name", [name for name in arrays.__all__ if name != "Axis"])
def test_array_functions_refuse_by_difflabs_errors(name: str) -> None:
    function = getattr(arrays, name)
    requires_difflabs(function, calls_of_arrays(function))


CALLABLES = ("grad", "value_and_grad", "jacfwd", "jacrev", "hessian", "vmap")
ONCE = ("gradient", "jacobian", "value_and_gradient", "sparse_jacobian", "sparse_hessian")
DIRECT = (
    *("jvp", "vjp", "hvp", "linearize", "jet", "taylor", "checkpoint", "checkpoint_chain"),
    *("laplacian", "biharmonic", "divergence", "curl", "directional", "differentiate"),
)
REST = (
    "apply",
    "cheapest_dtypes",
    "checkpoint_with",
    "columns",
    "compile",
    "cond",
    "count",
    "enclose",
    "error_budget",
    "evaluate",
    "explain",
    "fold_batch_norm",
    "fori_loop",
    "from_casadi",
    "from_fpcore",
    "from_jax",
    "from_latex",
    "from_onnx",
    "from_sympy",
    "jit",
    "memory",
    "name",
    "parse",
    "partial",
    "problem",
    "problems",
    "prove",
    "scan",
    "stabilise",
    "stop_gradient",
    "tensor",
    "to_onnx",
    "trace",
    "while_loop",
)
WALKED = (*CALLABLES, *ONCE, *DIRECT, *REST)
ELSEWHERE = {
    *("CustomFunction", "DifflabError", "Function", "Tensor", "__version__", "arrays", "compare"),
    *("nn", "optim", "policies", "random", "solve"),
    *("detect_anomaly", "enable_grad", "inference_mode", "methods", "no_grad"),
}
"""Classes, contexts and what takes no arguments; `compare` is tested by the laboratory's tests."""


def test_every_public_name_is_walked_or_excused() -> None:
    assert set(WALKED) | ELSEWHERE == set(dl.__all__)


def square(x: Any) -> Any:
    return np.sum(np.sin(x) * 0.5)


def calls_of_transforms(name: str, function: Callable[..., Any]) -> Calls:
    plane = dl.parse("x^2*y")
    for value in SETTINGS:
        yield (value,), {}
        yield (value, value), {}
        if name not in ("checkpoint", "checkpoint_chain"):
            yield (plane, value), {}
            yield (plane, value, value), {}
            yield (plane, (2.0, 1.0), value), {}
            yield (plane, value, (1.0, 1.0)), {}
            yield (plane, (value,), (1.0,)), {}
        for setting in named(function)[1:]:
            yield (plane,), {setting: value}
            yield (square,), {setting: value}


@pytest.mark.parametrize("name", WALKED)
def test_public_functions_refuse_by_difflabs_errors(name: str) -> None:
    function = NEEDED.get(name) or getattr(dl, name)
    requires_difflabs(function, calls_of_transforms(name, function))


@pytest.mark.parametrize("name", sorted(set(dl.solve.__all__) - {"Bounds", "OptimizeResult"}))
def test_solvers_refuse_by_difflabs_errors(name: str) -> None:
    solve = getattr(dl.solve, name)
    good = {"quad": (square, 0.0, 1.0), "linear": (np.eye(2), np.ones(2))}.get(name, (square, 1.0))
    good = (lambda t, y: y, (0.0, 1.0), 1.0) if name == "ivp" else good

    def calls() -> Calls:
        for value in (value for value in HOSTILE if not isinstance(value, dict)):
            for place in range(len(good)):
                yield (*good[:place], value, *good[place + 1 :]), {}
            yield (*good, value), {}
            for setting in named(solve):
                yield good, {setting: value}

    requires_difflabs(solve, calls())


@pytest.mark.parametrize("name", [*CALLABLES, *ONCE])
def test_what_transforms_return_refuses_by_difflabs_errors(name: str) -> None:
    transform = getattr(dl, name)

    def called(value: Any, **settings: Any) -> Any:
        return transform(dl.parse("x^2"), **settings)(value)

    def calls() -> Calls:
        for value in SETTINGS:
            yield (value,), {}
            for setting in named(transform)[1:]:
                yield (2.0,), {setting: value}

    requires_difflabs(called, calls())


@pytest.mark.parametrize("wrong", [{"stride": 0}, {"padding": -1}, {"stride": 1.5}])
def test_settings_are_named_with_what_they_may_be(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(dl.DifflabError, match=f"{name} of conv2d is an integer of at least ."):
        arrays.conv2d(np.ones((1, 3, 3)), np.ones((1, 1, 2, 2)), **wrong)


def test_what_is_no_text_is_refused_with_a_hint() -> None:
    with pytest.raises(dl.DifflabError, match="parse takes the text of a program, not int") as told:
        dl.parse(3)  # type: ignore[arg-type]
    assert "dl.trace" in str(told.value)

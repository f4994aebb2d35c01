r"""The problems that come with difflab: sets, finding problems in them, and families of functions.

A problem is a text file ``sets/SET/NAME.txt`` (`difflab.lab.problems.file`). Title, source and
licence of every set stand in ``sets/sets.toml``. Only the heads of the files are read for a list.
A family is a function of a size, as expressions of the language, for benchmarks and tests.

Examples
--------
>>> logistic(3)
'l2 = 4*x*(1 - x)\n4*l2*(1 - l2)'
>>> FAMILIES["product"].point(3)
{'x1': 0.5, 'x2': 0.6666666666666666, 'x3': 0.75}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from difflab.core.wording import PROBLEM, did_you_mean
from difflab.errors import InputError
from difflab.lab.problems.file import KINDS, Problem, read_header, read_text

NamedPoint = dict[str, float]

_CORE = 50  # length of the chain that all outputs of `crossover` share


@dataclass(frozen=True)
class FunctionFamily:
    """Functions of growing size.

    Attributes
    ----------
    title : str
        A readable description.
    text : callable
        Map the size to an expression of the language.
    point : callable
        Map the size to the customary point.
    source : str
        The origin of the family.
    """

    title: str
    text: Callable[[int], str]
    point: Callable[[int], NamedPoint]
    source: str


def logistic(n: int) -> str:
    """Return the n-th iterate of the logistic map, l₁ = x and lₖ₊₁ = 4lₖ(1 − lₖ).

    The textbook case of expression swell: Baydin et al. 2018, Table 1.
    """
    return _iterated("l", n, "x", lambda y: f"4*{y}*(1 - {y})", start=1)


def nested_sine(n: int) -> str:
    """Return n steps of y ← sin(x + y), starting with y = x.

    Its swell is only tree counting: as a graph, f′ is about as large as f.
    """
    return _iterated("y", n, "x", lambda y: f"sin(x + {y})", start=0)


def _iterated(letter: str, n: int, first: str, step: Callable[[str], str], *, start: int) -> str:
    """Return a program that names every iterate but the last."""
    lines = []
    current = first
    for k in range(start + 1, n + 1):
        lines.append(f"{letter}{k} = {step(current)}")
        current = f"{letter}{k}"
    return "\n".join([*lines[:-1], lines[-1].partition(" = ")[2]]) if lines else first


def product(n: int) -> str:
    """Return ∏xᵢ, Speelpenning's product: whose gradient has real expression swell."""
    return "*".join(_inputs(n))


def rosenbrock(n: int) -> str:
    """Return the chained Rosenbrock function Σ 100(xᵢ₊₁ − xᵢ²)² + (1 − xᵢ)², n ≥ 2."""
    x = _inputs(n)
    return " + ".join(f"100*({after} - {here}^2)^2 + (1 - {here})^2" for here, after in pairwise(x))


def helmholtz(n: int) -> str:
    r"""Return the Helmholtz free energy of a mixed fluid of n substances.

    .. math:: RT \sum_i x_i \ln\frac{x_i}{1 - b^T x} - \frac{x^T A x}{\sqrt 8\, b^T x}
        \ln\frac{1 + (1 + \sqrt 2) b^T x}{1 + (1 - \sqrt 2) b^T x}

    with RT = 8.314·273, aᵢⱼ = 1/(i + j − 1) and bᵢ = 1e-5.
    """
    x = _inputs(n)
    entropy = " + ".join(f"{name}*log({name}/free)" for name in x)
    rows = (
        f"{name}*(" + " + ".join(f"{other}/{i + j + 1}" for j, other in enumerate(x)) + ")"
        for i, name in enumerate(x)
    )
    lines = [
        f"volume = {' + '.join(f'0.00001*{name}' for name in x)}",
        "free = 1 - volume",
        f"attraction = {' + '.join(rows)}",
        f"entropy = {entropy}",
        "ratio = (1 + (1 + sqrt(2))*volume)/(1 + (1 - sqrt(2))*volume)",
        "2269.722*entropy - attraction/(sqrt(8)*volume)*log(ratio)",
    ]
    return "\n".join(lines)


def crossover(n: int, m: int) -> str:
    """Return n inputs and m outputs around one chain that forward mode runs n times.

    Reverse mode runs it m times: the two cost the same near n = m.
    """
    lines = ["c0 = " + " + ".join(f"sin({name})" for name in _inputs(n))]
    lines += [f"c{k + 1} = sqrt(c{k}*c{k} + 1)" for k in range(_CORE)]
    outputs = [f"sin({j}*c{_CORE})" for j in range(1, m + 1)]
    return "\n".join([*lines, outputs[0] if m == 1 else f"[{', '.join(outputs)}]"])


def _inputs(n: int) -> list[str]:
    return [f"x{i}" for i in range(1, n + 1)]


def _named(values: list[float]) -> NamedPoint:
    return {f"x{i}": value for i, value in enumerate(values, start=1)}


FAMILIES: Mapping[str, FunctionFamily] = {
    "logistic": FunctionFamily(
        "logistic map: y ← 4·y·(1 − y)",
        logistic,
        lambda n: {"x": 0.2},
        "Baydin, Pearlmutter, Radul, Siskind, JMLR 18(153), 2018, Table 1",
    ),
    "product": FunctionFamily(
        "product: x₁·x₂·…·xₙ",
        product,
        lambda n: _named([i / (i + 1) for i in range(1, n + 1)]),
        "Speelpenning 1980; point of ADOL-C's example speelpenning.cpp",
    ),
    "nested": FunctionFamily(
        "nesting: y ← sin(x + y)",
        nested_sine,
        lambda n: {"x": 0.3},
        "made for this comparison: every step uses x and the step before",
    ),
    "helmholtz": FunctionFamily(
        "Helmholtz free energy of a mixed fluid",
        helmholtz,
        lambda n: _named([round(1 / (i + 1), 6) for i in range(1, n + 1)]),
        "Griewank 1989; constants as in the PCOMP example, cited by Baydin et al. 2018",
    ),
    "rosenbrock": FunctionFamily(
        "Rosenbrock, chained",
        rosenbrock,
        lambda n: _named([1.0 if i % 2 else -1.2 for i in range(n)]),
        "Rosenbrock 1960; start of Moré, Garbow, Hillstrom, ACM TOMS 7, 1981, problem 21",
    ),
}


# --- sets -------------------------------------------------------------------------------------

SETS = Path(__file__).parent / "sets"
"""The folder of the sets."""


@dataclass(frozen=True)
class ProblemSet:
    """A set of problems: its title, sources, and the terms of its contents."""

    name: str
    title: str
    source: str
    licence: str
    terms: str


@cache
def problem_sets() -> dict[str, ProblemSet]:
    """Return the sets by name, in the order of ``sets.toml``.

    Examples
    --------
    >>> problem_sets()["mgh"].licence
    'MIT'
    """
    import tomllib

    listed = tomllib.loads(read_text(SETS / "sets.toml"))
    return {name: ProblemSet(name, **entry) for name, entry in listed.items()}


@cache
def _names(set_name: str) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (SETS / set_name).glob("*.txt")))


@cache
def _read(name: str) -> Problem:
    path = SETS / f"{name}.txt"
    return Problem(name, path, read_header(path))


def problem(name: str) -> Problem:
    """Return a problem of the library.

    Parameters
    ----------
    name : str
        ``"mgh/rosenbrock"``; the prefix ``problem:`` may stand before it.

    Returns
    -------
    Problem
        Its `function`, `start`, `domain`, and the `jacobian` at the start.

    Raises
    ------
    InputError
        There is no such problem; the message names the nearest ones.

    Examples
    --------
    >>> import difflab as dl
    >>> problem = dl.problem("mgh/rosenbrock")
    >>> problem.start
    {'x1': -1.2, 'x2': 1.0}
    >>> dl.gradient(problem.function)(**problem.start)
    array([-215.6,  -88. ])
    >>> problem.reference.elements[1, "x1"]
    '-215.5999999999999409361350899416748893621'
    """
    if not isinstance(name, str):
        raise InputError(
            f"a problem is named by text, not {type(name).__name__}",
            hint='problem("mgh/rosenbrock"); `difflab problems` lists them',
        )
    name = name.removeprefix(PROBLEM)
    chosen, _, own = name.partition("/")
    if chosen not in problem_sets():
        raise _unknown(f"there is no set of problems {chosen!r}", chosen, list(problem_sets()))
    if own not in _names(chosen):
        names = [f"{chosen}/{other}" for other in _names(chosen)]
        raise _unknown(f"there is no problem {name!r}", name, names)
    return _read(name)


def problems(
    sets: Sequence[str] | None = None,
    *,
    kinds: Sequence[str] | None = None,
    inputs: tuple[int, int] | None = None,
) -> list[Problem]:
    """Return the problems of some sets and kinds, by set and name.

    Parameters
    ----------
    sets, kinds : sequence of str, optional
        By default all.
    inputs : (int, int), optional
        The smallest and largest number of inputs.

    Raises
    ------
    InputError
        There is no such set or kind.

    Examples
    --------
    >>> len(problems(["nist"]))
    27
    >>> {problem.kind for problem in problems(["mgh"])}
    {'least-squares'}
    """
    chosen = _chosen(sets, "sets", "set of problems", list(problem_sets()))
    wanted = _chosen(kinds, "kinds", "kind of problem", list(KINDS))
    low, high = (0, 10**9) if inputs is None else _range(inputs)
    candidates = (_read(f"{name}/{own}") for name in chosen for own in _names(name))
    return [one for one in candidates if one.kind in wanted and low <= one.n <= high]


def _chosen(names: Any, setting: str, what: str, options: list[str]) -> list[str]:
    """Return the names that are given, without duplicates; all that are known where none is."""
    if names is None:
        return options
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"{setting} of problems must be a list of names, not {names!r:.60}",
            hint=f"one or more of {', '.join(options)}",
        )
    for name in names:
        if name not in options:
            raise _unknown(f"there is no {what} {name!r}", name, options)
    return list(dict.fromkeys(names)) or options


def _range(inputs: Any) -> tuple[int, int]:
    """Return the smallest and largest number of inputs."""
    pair = isinstance(inputs, list | tuple) and len(inputs) == 2
    if not pair or not all(isinstance(number, int) for number in inputs):
        raise InputError(
            f"inputs of problems must be two integers, the fewest and the most, not {inputs!r:.60}"
        )
    return inputs[0], inputs[1]


def _unknown(message: str, name: str, names: Sequence[str]) -> InputError:
    guess = did_you_mean(name, names, count=3, spelled=str) or f"one of {', '.join(names[:16])}."
    return InputError(message, hint=f"{guess} `difflab problems` lists them")

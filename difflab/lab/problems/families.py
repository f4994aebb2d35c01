r"""Named families of functions, as expressions of the language, for benchmarks and tests.

Examples
--------
>>> logistic(3)
'l2 = 4*x*(1 - x)\n4*l2*(1 - l2)'
>>> FAMILIES["product"].point(3)
{'x1': 0.5, 'x2': 0.6666666666666666, 'x3': 0.75}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

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

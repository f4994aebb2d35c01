"""A derivative that a rule declares is not wrong; a wrong one beside it still is."""

import numpy as np
import pytest

import difflab as dl
from difflab.lab.compare import compare
from difflab.lab.domain.compare import compare_domain
from difflab.lab.recommend import recommend
from difflab.methods import registry
from difflab.methods.automatic import REVERSE
from difflab.methods.protocol import Estimate, Family


class Rounded(dl.CustomFunction):
    """A straight-through estimator: the derivative of the identity."""

    forward = staticmethod(lambda ctx, x: np.floor(x))
    backward = staticmethod(lambda ctx, y_bar: y_bar)
    jvp = staticmethod(lambda ctx, x_dot: x_dot)


class Reversed(dl.CustomFunction):
    forward = staticmethod(lambda ctx, x: 1.0 * x)
    backward = staticmethod(lambda ctx, y_bar: -2.0 * y_bar)
    jvp = staticmethod(lambda ctx, x_dot: -2.0 * x_dot)


class Right(dl.CustomFunction):
    forward = staticmethod(lambda ctx, x: (ctx.save_for_backward(x), x * x)[1])
    backward = staticmethod(lambda ctx, y_bar: 2.0 * ctx.saved_tensors[0] * y_bar)


def looped(x):
    return dl.scan(lambda c, _: (dl.stop_gradient(c) * x, None), x, length=3)[0]


DECLARED = [
    (lambda x: x * dl.stop_gradient(x), "stop_gradient", 3.0, 6.0),
    (lambda x: x + dl.stop_gradient(np.floor(x + 0.5) - x), "stop_gradient", 1.0, 0.0),
    (lambda x: x * x.detach() if hasattr(x, "detach") else x * x, "stop_gradient", 3.0, 6.0),
    (lambda x: Rounded.apply(x + 0.5) * 2.0, "Rounded", 2.0, 0.0),
    (lambda x: Reversed.apply(x) ** 2, "Reversed", -12.0, 6.0),
    (lambda x: Reversed.apply(x) * np.sin(x), "Reversed", None, None),
    (looped, "stop_gradient", 27.0, 108.0),
    (lambda x: dl.cond(x > 0, lambda x: Reversed.apply(x), lambda x: x, x), "Reversed", -2.0, 1.0),
    (lambda x: Right.apply(x) * dl.stop_gradient(x), "stop_gradient", 18.0, 27.0),
    (lambda x: Reversed.apply(x) * dl.stop_gradient(x), "Reversed and stop_gradient", -6.0, 6.0),
]


@pytest.mark.parametrize(("code", "name", "declared", "derivative"), DECLARED)
def test_declared_rules_have_a_verdict_of_their_own(code, name, declared, derivative):
    result = compare(code, {"x": 3.0}, timing=False, methods=["reverse", "richardson"])
    reverse, numeric = result.methods
    assert numeric.verdict == "agree", numeric.message
    assert reverse.verdict == "declared", reverse.message
    said = f"differs from the derivative by the rule of {name}: "
    assert reverse.message.startswith(said)
    if declared is not None:
        assert reverse.jacobian[0, 0] == pytest.approx(declared)
        assert numeric.jacobian[0, 0] == pytest.approx(derivative, rel=1e-6, abs=1e-9)
        assert f": {declared:g} where the derivative is {derivative:g}" in reverse.message
    assert result.agreed


def test_text_and_the_second_order_declare_too():
    assert compare("x*stop_gradient(x)", {"x": 3}, timing=False).agreed
    result = compare("x^2*stop_gradient(x)", {"x": 3}, timing=False, order=2, methods=["reverse"])
    row = result.methods[0]
    assert (row.verdict, row.jacobian.tolist()) == ("declared", [[6.0]])  # the second one is 18


def test_rules_that_are_the_derivative_agree():
    result = compare(lambda x: Right.apply(x), {"x": 3.0}, timing=False, methods=["reverse"])
    assert result.methods[0].verdict == "agree"
    shifted = lambda x: np.exp(x - dl.stop_gradient(x)) * np.exp(dl.stop_gradient(x))  # noqa: E731
    result = compare(shifted, {"x": 3.0}, timing=False, methods=["reverse"])
    assert result.methods[0].verdict in ("agree", "inconclusive")


@pytest.fixture
def sabotaged(monkeypatch):
    """The sine with a wrong derivative, as a bug of difflab would be."""
    from difflab.core.primitive import elementwise
    from difflab.primitives import sin

    monkeypatch.setattr(type(sin), "__setattr__", object.__setattr__)
    before = sin.rule
    object.__setattr__(sin, "rule", elementwise(lambda t, y, x: t * y))
    yield
    object.__setattr__(sin, "rule", before)


def test_a_wrong_rule_beside_a_declared_one_is_wrong(sabotaged):
    code = lambda x: np.sin(x) * dl.stop_gradient(x)  # noqa: E731
    result = compare(code, {"x": 1.75}, timing=False, methods=["reverse"])
    assert result.methods[0].verdict == "disagree"
    assert not result.agreed


class Scaled:
    """A method of another package that is wrong, only where a rule is declared or always."""

    name, family, summary, orders = "scaled", Family.AUTOMATIC, "reverse mode, scaled", (1, 2)

    def __init__(self, only_declared):
        self.only_declared = only_declared

    def missing(self):
        return None

    def prepare(self, problem):
        found = REVERSE.prepare(problem)
        rows = [row.name for row in problem.function.graph.primitives]
        factor = 1.5 if not self.only_declared or "stop_gradient" in rows else 1.0

        class Prepared:
            size = operations = None

            def __call__(self, x):
                return Estimate(factor * found(x).value, None, 0)

        return Prepared()


@pytest.mark.parametrize("only_declared", [False, True])
def test_another_method_is_wrong_where_it_follows_no_rule(monkeypatch, only_declared):
    monkeypatch.setattr(registry, "_loaded", {**registry._loaded, "scaled": Scaled(only_declared)})
    result = compare("x*stop_gradient(x)", {"x": 3}, timing=False, methods=["scaled"])
    assert result.methods[0].verdict == "disagree"


def test_a_numeric_method_declares_nothing():
    result = compare("abs(x)*stop_gradient(x)", {"x": 3}, timing=False, methods=["richardson"])
    assert result.methods[0].verdict == "agree"


def test_the_recommendation_names_them():
    both = compare("x*stop_gradient(x)", {"x": 3}, timing=False)
    assert "forward, reverse give the derivative that the function declares" in recommend(both)
    alone = compare("x*stop_gradient(x)", {"x": 3}, timing=False, methods=["reverse"])
    assert recommend(alone).startswith("For the derivative that this function declares")


def test_over_a_domain():
    code = lambda x: Reversed.apply(x) * np.sin(x)  # noqa: E731
    found = compare_domain(code, {"x": (0.5, 1.5)}, points=40, methods=["reverse", "symbolic"])
    reverse, symbolic = found.methods
    assert reverse.shares["declared"] == 1.0
    assert symbolic.shares["agree"] == 1.0
    assert found.agreed
    assert reverse.worst.verdict == "declared"
    assert "by the rule of Reversed: " in reverse.worst.message
    assert reverse.worst.node is None


def test_a_wrong_rule_over_a_domain_is_wrong(sabotaged):
    code = lambda x: np.sin(x) * dl.stop_gradient(x)  # noqa: E731
    found = compare_domain(code, {"x": (1.5, 2.0)}, points=20, methods=["reverse"])
    assert found.methods[0].shares["disagree"] == 1.0
    assert not found.agreed

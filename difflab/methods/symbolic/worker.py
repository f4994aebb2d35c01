"""SymPy's side of the symbolic method, run in a process of its own.

All differentiation is SymPy's: `diff`, `simplify`, `cse`, `lambdify`. The code that `lambdify`
generates contains only names that this module creates, never the user's text. Sizes are counted
without walking SymPy's trees.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import perf_counter
from typing import Any

import numpy as np
import sympy
from numpy import float64
from numpy.typing import NDArray
from sympy.core.function import _coeff_isneg
from sympy.core.operations import LatticeOp
from sympy.printing.codeprinter import PrintMethodNotImplementedError

from difflab.core.primitive import Primitive
from difflab.core.worker import Handlers, ReportProgress, limit_memory
from difflab.errors import UnsupportedError
from difflab.graph.function import Function
from difflab.graph.interpreters import SympyInterpreter
from difflab.graph.ir import Number
from difflab.methods.expressions import expressions
from difflab.methods.process.derivative import PreparedFacts
from difflab.methods.process.session import DerivativeSession
from difflab.methods.protocol import Estimate, Problem
from difflab.methods.symbolic.method import Sizes
from difflab.methods.timer import Stopwatch

Expressions = list[Any]
GeneratedCode = Callable[[list[float]], list[Any]]
Shared = tuple[list[tuple[Any, Any]], Expressions]  # the result of `cse`

REPORT_INTERVAL = 0.005  # seconds between two progress reports of a loop with many short steps


def handlers(report: ReportProgress) -> Handlers:
    """Return the handlers of this process, after using every part of SymPy once.

    SymPy imports much of itself on first use; that is part of starting the process, not of the
    first derivative. The imports of `simplify` do not depend on its argument.
    """
    x, y = sympy.symbols("x y", real=True)
    warm = [sympy.diff(sympy.log(x) * sympy.sin(x * y), v) for v in (x, y)]
    _lambdified([x, y], warm)
    sympy.simplify(x + y)
    session = SympySession(report)
    return {**session.handlers(), "simplify": session.simplify}


class SympySession(DerivativeSession):
    """The derivatives that SymPy's process holds."""

    def __init__(self, report: ReportProgress) -> None:
        super().__init__()
        self._report = report

    def prepared(self, problem: Problem) -> tuple[SympyDerivative, PreparedFacts]:
        """Return SymPy's derivative of a problem, with the time it took and its sizes."""
        assert problem.function is not None
        limit_memory(problem.memory_bytes)
        with Stopwatch() as watch:
            derivative = SympyDerivative(problem.function, problem.order, self._report)
            seconds = watch.seconds()
        size = derivative.size()
        return derivative, PreparedFacts(seconds, size.operations, size)

    def simplify(self, number: int) -> Sizes:
        """Return the size of the derivative after `sympy.simplify`."""
        derivative = self._derivatives[number]
        simplified = []
        for done, expression in enumerate(derivative.expressions):
            self._report(f"simplified {done} of {len(derivative.expressions)} derivatives")
            simplified.append(sympy.simplify(expression))
        return _sizes(simplified, *sympy.cse(simplified))

    def value(self, number: int, x: NDArray[float64]) -> Estimate:
        """Return the derivative at `x`."""
        return Estimate(self._derivatives[number](x), None, 0)


class SympyDerivative:
    """SymPy's Jacobian or Hessian of a function, as expressions and as Python code.

    Attributes
    ----------
    expressions : list
        The elements of the Jacobian in row-major order, or the upper triangle of the Hessian.
    """

    def __init__(self, function: Function, order: int, report: ReportProgress) -> None:
        symbols, outputs = _converted(function, report)
        if order == 1:
            rows, columns = len(outputs), len(symbols)
            self.expressions = _differentiated(
                [(output, symbol) for output in outputs for symbol in symbols], report
            )
            self._positions = np.arange(rows * columns).reshape(rows, columns)
        else:
            self.expressions, self._positions = _hessian(outputs[0], symbols, report)
        _refuse_unevaluated(self.expressions)
        report(f"differentiated all {len(self.expressions)} derivatives; generating code")
        self._symbols = symbols
        self._call, self._shared = _lambdified(symbols, self.expressions)
        self._robust: GeneratedCode | None = None

    def size(self) -> Sizes:
        """Return the sizes of the derivative, as a tree and after `cse`."""
        return _sizes(self.expressions, *self._shared)

    def __call__(self, x: NDArray[float64]) -> NDArray[float64]:
        """Return the derivative at `x`; nan where SymPy's value is not a real number."""
        try:
            flat = np.array(self._call(x.tolist()), dtype=float64)
        except (ArithmeticError, TypeError, ValueError):
            # `math` raises where NumPy has inf and nan, and powers may be complex.
            flat = self._by_numpy(x)
        return flat[self._positions]

    def _by_numpy(self, x: NDArray[float64]) -> NDArray[float64]:
        if self._robust is None:
            self._robust, _ = _lambdified(self._symbols, self.expressions, _MODULES[1:])
        with np.errstate(all="ignore"):
            entries = self._robust(list(x))
        return np.array([_real(entry) for entry in entries], dtype=float64)


def _converted(function: Function, report: ReportProgress) -> tuple[Expressions, Expressions]:
    """Return a symbol per flattened input and an expression per flattened output."""
    total = len(function.graph)
    report(f"converted 0 of {total} nodes")
    symbols, outputs = expressions(
        function,
        lambda number: sympy.Symbol(f"x{number}", real=True),
        _ReportingInterpreter(total, report),
    )
    report(f"converted all {total} nodes")
    return symbols, [_as_expression(output) for output in outputs]


def _as_expression(output: Any) -> Any:
    expression = sympy.sympify(output, strict=True)
    # In SymPy a symbol may also be a Boolean; here it is a real input.
    if isinstance(expression, sympy.logic.boolalg.Boolean) and not expression.is_Symbol:
        return sympy.Piecewise((1, expression), (0, True))
    return expression


class _ReportingInterpreter(SympyInterpreter):
    """SymPy's interpreter, which reports how many nodes it has converted."""

    def __init__(self, total: int, report: ReportProgress) -> None:
        super().__init__()
        self._total = total
        self._report = report
        self._done = 0
        self._last = 0.0

    def constant(self, value: Number, name: str | None) -> Any:
        self._count()
        if name is None and isinstance(value, float) and np.isfinite(value):
            # With SymPy's default of 15 digits, generated code would contain another number.
            return sympy.Float(value, 17)
        return super().constant(value, name)

    def operation(self, primitive: Primitive) -> Callable[..., Any]:
        convert = super().operation(primitive)

        def counted(*args: Any, **params: Any) -> Any:
            self._count()
            return convert(*args, **params)

        return counted

    def _count(self) -> None:
        now = perf_counter()
        if now - self._last > REPORT_INTERVAL:
            self._last = now
            self._report(f"converted {self._done} of {self._total} nodes")
        self._done += 1


def _differentiated(pairs: Sequence[tuple[Any, Any]], report: ReportProgress) -> Expressions:
    """Return SymPy's derivative of each (expression, symbol)."""
    derivatives = []
    last = 0.0
    for done, (expression, symbol) in enumerate(pairs):
        now = perf_counter()
        if now - last > REPORT_INTERVAL:
            last = now
            report(f"differentiated {done} of {len(pairs)} derivatives")
        derivatives.append(sympy.diff(expression, symbol))
    return derivatives


def _hessian(
    output: Any, symbols: Expressions, report: ReportProgress
) -> tuple[Expressions, NDArray[Any]]:
    """Return the upper triangle of the Hessian, and the index of each element in it."""
    n = len(symbols)
    gradient = _differentiated([(output, symbol) for symbol in symbols], report)
    upper = [(i, j) for i in range(n) for j in range(i, n)]
    entries = _differentiated([(gradient[i], symbols[j]) for i, j in upper], report)
    positions = np.empty((n, n), dtype=np.intp)
    for position, (i, j) in enumerate(upper):
        positions[i, j] = positions[j, i] = position
    return entries, positions


def _refuse_unevaluated(expressions: Expressions) -> None:
    """Raise if SymPy has no rule and leaves a derivative unevaluated."""
    for expression in _distinct(expressions):
        if isinstance(expression, sympy.Derivative | sympy.Subs):
            inner = expression.expr if isinstance(expression, sympy.Derivative) else expression
            raise UnsupportedError(f"SymPy has no derivative of {inner.func.__name__}")


def _dirac(x: float, *_order: int) -> float:
    """Return Dirac's delta, or a derivative of it, at a float: nan at 0."""
    return 0.0 if x != 0 else float("nan")


_OWN = {"DiracDelta": _dirac}
# The first that supports the expression is used. SciPy is slow to import; `math` needs no import,
# has less call overhead and evaluates only the selected branch.
_MODULES: tuple[list[Any], ...] = ([_OWN, "math"], [_OWN, "numpy"], [_OWN, "scipy", "numpy"])


def _lambdified(
    symbols: Expressions, expressions: Expressions, modules: Sequence[list[Any]] = _MODULES
) -> tuple[GeneratedCode, Shared]:
    """Return code for all `expressions` at once, and the result of `cse`."""
    shared: Shared = sympy.cse(expressions)
    missing: set[str] = set()
    for module in modules:
        try:
            call: GeneratedCode = sympy.lambdify(
                [symbols], expressions, modules=module, cse=lambda _: shared
            )
        except PrintMethodNotImplementedError:
            continue
        missing = {n for n in call.__code__.co_names if not _known(n, call.__globals__)}
        if not missing:
            return call, shared
    raise UnsupportedError(f"SymPy generates no code for {', '.join(sorted(missing)) or 'this'}")


def _known(name: str, namespace: dict[str, Any]) -> bool:
    return name in namespace or hasattr(builtins, name)


def _real(entry: Any) -> float:
    """Return a real number as float and anything else as nan."""
    try:
        number = complex(entry)
    except OverflowError:  # an integer beyond float64
        return float("inf") if entry > 0 else float("-inf")
    return number.real if number.imag == 0 else float("nan")


# --- sizes, without walking the trees ---------------------------------------------------------


def _sizes(
    expressions: list[Any], replacements: list[tuple[Any, Any]], reduced: list[Any]
) -> Sizes:
    """Return the sizes of `expressions`, given the results of `sympy.cse`."""
    operations, leaves = tree_size(expressions)
    shared, shared_leaves = dag_size(replacements, reduced)
    return Sizes(operations + leaves, shared + shared_leaves, operations, shared)


def _distinct(expressions: Iterable[Any]) -> Iterator[Any]:
    """Yield every distinct subexpression once."""
    seen = set(expressions)
    stack = list(seen)
    while stack:
        expression = stack.pop()
        yield expression
        fresh = set(expression.args) - seen
        seen |= fresh
        stack.extend(fresh)


def tree_size(expressions: Iterable[Any]) -> tuple[int, int]:
    """Return the operations and the leaves of all expressions written out as trees.

    The operations are `sympy.count_ops`, but found in time linear in the distinct
    subexpressions. SymPy's own function walks the tree, which may be exponentially larger than
    the expressions in memory.

    Examples
    --------
    >>> x = sympy.Symbol("x")
    >>> tree_size([x**2 - sympy.sin(x), sympy.Integer(3)])
    (3, 4)
    """
    known: dict[Any, tuple[int, int]] = {}
    parts: dict[Any, tuple[int, int, list[Any]]] = {}
    wanted = list(expressions)
    stack = list(wanted)
    while stack:
        expression = stack[-1]
        if expression in known:
            stack.pop()
            continue
        if expression not in parts:
            parts[expression] = _taken_apart(expression)
        operations, leaves, operands = parts[expression]
        waiting = [operand for operand in operands if operand not in known]
        if waiting:
            stack.extend(waiting)
            continue
        known[expression] = (
            operations + sum(known[operand][0] for operand in operands),
            leaves + sum(known[operand][1] for operand in operands),
        )
        stack.pop()
    counts = [known[expression] for expression in wanted]
    return sum(operations for operations, _ in counts), sum(leaves for _, leaves in counts)


def dag_size(replacements: Iterable[tuple[Any, Any]], reduced: Iterable[Any]) -> tuple[int, int]:
    """Return the number of operations and of distinct leaves in a result of `sympy.cse`."""
    pairs = list(replacements)
    expressions = [*(shared for _, shared in pairs), *reduced]
    operations, _ = tree_size(expressions)
    temporaries = {symbol for symbol, _ in pairs}
    leaves = sum(not e.args and e not in temporaries for e in _distinct(expressions))
    return operations, leaves


def _taken_apart(a: Any) -> tuple[int, int, list[Any]]:
    """Return the operations and leaves of `a` itself, and its operands.

    Operations are those of `sympy.count_ops`: ``a - b`` is one, and so is ``1/x``.
    """
    if a.is_Rational:
        return (0 if a is sympy.S.One else int(a.p < 0) + int(a.q != 1)), 1, []
    operations = 0
    if a.is_Mul:
        if _coeff_isneg(a):
            operations += 1
            a = a.as_two_terms()[1] if a.args[0] is sympy.S.NegativeOne else -a
        top, bottom = sympy.fraction(a)
        if top.is_Integer:
            return operations + 1 + int(top.p < 0), 1, [bottom]
        if bottom is not sympy.S.One:
            return operations + 1, 0, [top, bottom]
    elif a.is_Add:
        return _sum_taken_apart(a)
    if a.is_Pow and a.exp is sympy.S.NegativeOne:
        return operations + 1, 1, [a.base]
    if a.is_Pow and a.base == sympy.S.Exp1:
        return operations + 1, 0, [a.exp]
    if not a.args:
        return operations + int(a == sympy.S.Exp1), 1, []
    if a.is_Mul or isinstance(a, LatticeOp):
        operations += len(a.args) - 1
    elif a.is_Pow or a.is_Function:
        operations += 1
    return operations, 0, list(a.args)


def _sum_taken_apart(a: Any) -> tuple[int, int, list[Any]]:
    """Count a sum's signs: ``-x - y`` is a negation and a subtraction, ``y - x`` only the last."""
    negative = [_coeff_isneg(term) for term in a.args]
    operands = [-term if below else term for term, below in zip(a.args, negative, strict=True)]
    return len(operands) - 1 + int(all(negative)), 0, operands

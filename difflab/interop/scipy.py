"""SciPy: the arguments of its solvers, from one function."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import LowLevelCallable
from scipy import sparse as scipy_sparse

from difflab.autodiff import gradient, hessian, hvp, jacobian
from difflab.autodiff.functions.flat import of_inputs, require_scalar, with_inputs
from difflab.autodiff.sparsity import SparseDerivative, sparse_hessian, sparse_jacobian, sparsity
from difflab.core.conversions import host_numbers, host_reals
from difflab.core.wording import counted
from difflab.errors import InputError, UnsupportedError
from difflab.execute.compiled import Compiled, compile
from difflab.graph.algebra import require_analytic
from difflab.graph.builder import Builder
from difflab.graph.checks import require_flag, require_function
from difflab.graph.function import Function, inline
from difflab.graph.names import shortened
from difflab.graph.node import Node
from difflab.graph.values import checked_value
from difflab.primitives import constant_array, multiply, pack, sum_

Vector = NDArray[np.float64]
# A string: the class can be subscripted from SciPy 1.16 on.
Matrix: TypeAlias = "NDArray[np.float64] | scipy_sparse.csr_array[Any]"
WEIGHTS = "v"
POINT = "the point of a SciPy problem"


def low_level(fast: Compiled, kind: str = "integrand") -> LowLevelCallable:
    """Return a compiled scalar function as a `LowLevelCallable`, which SciPy calls without Python.

    Parameters
    ----------
    fast : compiled Function
        A function that `compile` made, with one output, a number.
    kind : {"integrand", "filter"}
        What calls it: `scipy.integrate.quad` and `nquad`, with the flattened inputs as variables;
        or `scipy.ndimage.generic_filter`, with the elements of the footprint.

    Returns
    -------
    LowLevelCallable
        Its machine code is never unloaded.

    Raises
    ------
    InputError
        `fast` is no compiled function, its result is no number, or the kind is unknown.
    UnsupportedError
        The function has no machine code with an address.
    MissingDependencyError
        llvmlite is missing or broken.

    Examples
    --------
    >>> import difflab as dl
    >>> from scipy.integrate import quad
    >>> wave = dl.compile(dl.parse("exp(-x^2)*cos(3*x)"))
    >>> value, error = quad(low_level(wave), 0.0, 3.0)
    >>> round(value, 12)
    0.0934255318
    """
    if not isinstance(fast, Compiled):
        raise InputError(
            f"low_level takes a compiled function, not a {type(fast).__name__}",
            hint="compile it first: low_level(dl.compile(f))",
        )
    if kind not in _SIGNATURES:
        raise InputError(f"there is no kind {kind!r} of function", hint=f"one of {_KINDS}")
    if fast.function.output_shapes != ((),):
        raise InputError("low_level takes a function with one output, a number")
    return LowLevelCallable(fast.exported.function(kind, *_SIGNATURES[kind]))


_NUMBERS = ctypes.POINTER(ctypes.c_double)
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "integrand": (ctypes.c_double, ctypes.c_int, _NUMBERS, ctypes.c_void_p),
    "filter": (ctypes.c_int, _NUMBERS, ctypes.c_ssize_t, _NUMBERS, ctypes.c_void_p),
}
_KINDS = ", ".join(_SIGNATURES)


def problem(
    f: Function | Compiled,
    *,
    constants: Mapping[str, ArrayLike] | None = None,
    time: str | None = None,
    sparse: bool = False,
) -> SciPyProblem:
    r"""Return the function and its derivatives as callables of one vector, for SciPy's solvers.

    The vector :math:`x` has the elements of all inputs, flattened in order, except those that
    `constants` gives a value.

    Parameters
    ----------
    f : Function or compiled Function
        A function made by `parse`, by `trace` or by a transform. That of a compiled one is used,
        with its target and threads; SciPy's numbers are float64.
    constants : mapping of str to array_like, optional
        Values of inputs that are not variables, such as measured data.
    time : str, optional
        For `scipy.integrate.solve_ivp`: the name of the independent variable t, a number. All
        callables then take ``(t, y)``. If `f` has no such input, it does not depend on t.
    sparse : bool
        Whether ``hess``, and ``jac`` of several outputs, are sparse matrices, computed with one
        sweep for each color of their columns. Not all solvers take these.

    Returns
    -------
    SciPyProblem
        With the callables ``fun``, ``jac``, ``hess`` and ``hessp``, and the matrix ``sparsity``.

    Raises
    ------
    InputError
        `f` is not a Function, a constant is no input, no variable is left, or, with `time`, the
        function does not have as many outputs as variables.
    PointError
        A constant has the wrong shape.
    UnsupportedError
        `f` is compiled for a GPU.

    Examples
    --------
    >>> import difflab as dl
    >>> from scipy.optimize import minimize
    >>> p = problem(dl.parse("(1 - x)^2 + 100*(y - x^2)^2"))
    >>> p
    <problem of (x, y): 1 output, dense derivatives>
    >>> x0 = [-1.2, 1.0]
    >>> minimize(p.fun, x0, jac=p.jac, hess=p.hess, method="trust-constr").x.round(6)
    array([1., 1.])
    """
    original = f.function if isinstance(f, Compiled) else f
    target, threads = (f.target, f.threads) if isinstance(f, Compiled) else ("auto", None)
    require_function(original, "problem")
    require_flag(sparse, "sparse", "problem")
    if target == "cupy":
        raise UnsupportedError("SciPy computes on the host, and the function is compiled for a GPU")
    function = _of_variables(original, _constants(original, constants), time)
    variables = function.inputs if time is None else function.inputs[1:]
    scipy_problem = SciPyProblem(function, variables, bool(sparse), target, threads)
    if not scipy_problem.n:
        raise InputError("the problem has no variable", hint="leave an input out of constants")
    if time is not None and scipy_problem.n != function.m:
        raise InputError(
            f"solve_ivp needs a derivative for each of the {counted(scipy_problem.n, 'variable')} "
            f"{shortened(variables)}, and the function has {counted(function.m, 'output')}",
            hint=f"time={time!r} names the independent variable, constants the parameters",
        )
    return scipy_problem


@dataclass(frozen=True, eq=False)
class SciPyProblem:
    """A function and its derivatives as SciPy calls them; made by `problem`.

    Each is compiled when it is first called. With `time`, all callables take ``(t, y)`` in place
    of ``x``.

    Attributes
    ----------
    function : Function
        What is solved, of the variables only.
    inputs : tuple of str
        The inputs whose elements make up the vector, in order.
    sparse : bool
        Whether ``hess``, and ``jac`` of several outputs, are sparse.
    target : str
        The target of `difflab.compile`.
    threads : int or None
        As for `difflab.compile`.

    Examples
    --------
    Residuals of a model at measured points, with its Jacobian:

    >>> import difflab as dl
    >>> from scipy.optimize import least_squares
    >>> model = dl.parse("t: [4]; y: [4]; a*exp(-b*t) - y")
    >>> data = {"t": [0.0, 1.0, 2.0, 3.0], "y": [2.0, 1.0, 0.5, 0.25]}
    >>> p = problem(model, constants=data)
    >>> fit = least_squares(p.fun, p.pack(a=1.0, b=1.0), jac=p.jac)
    >>> {name: round(float(value), 6) for name, value in p.unpack(fit.x).items()}
    {'a': 2.0, 'b': 0.693147}
    """

    function: Function
    inputs: tuple[str, ...]
    sparse: bool
    target: str
    threads: int | None

    @property
    def n(self) -> int:
        """The number of variables."""
        return self.function.n - (len(self.function.inputs) - len(self.inputs))

    @property
    def m(self) -> int:
        """The number of outputs."""
        return self.function.m

    def fun(self, *point: Any) -> Any:
        """Return f(x): a float if f has one output number, an (m,) array otherwise."""
        return self._value(_joined(point))

    def jac(self, *point: Any) -> Matrix:
        """Return the gradient, an (n,) array, or of several outputs the (m, n) Jacobian."""
        matrix: Matrix = self._jacobian(_joined(point))
        return matrix

    def hess(self, x: ArrayLike, v: ArrayLike | None = None) -> Matrix:
        r"""Return the (n, n) matrix of second derivatives, of :math:`\sum_i v_i f_i(x)`.

        As `scipy.optimize.minimize` calls it, with `x` only, and as
        `scipy.optimize.NonlinearConstraint` does, with the multipliers `v`.

        Raises
        ------
        InputError
            The function has several outputs, and `v` is missing.
        """
        if v is None:
            if self._several:
                raise InputError(
                    f"the function has {counted(self.m, 'output')}: hess needs their weights v",
                    hint="hess(x, v), as scipy.optimize.NonlinearConstraint calls it",
                )
            v = 1.0
        if self._several:
            return cast(Matrix, self._hessian(_joined((x, v))))
        weight = host_reals(v, "the weight v of hess").reshape(())
        matrix: Matrix = self._hessian(_joined((x,))) * weight
        return matrix

    def hessp(self, x: ArrayLike, p: ArrayLike) -> Vector:
        """Return the product of the matrix of second derivatives with the direction `p`.

        Raises
        ------
        InputError
            The function has several outputs.
        """
        product: Vector = self._product(_joined((x, p)))
        return product

    @cached_property
    def sparsity(self) -> scipy_sparse.csr_array[np.bool_]:
        """The structural nonzeros of the Jacobian: SciPy's ``jac_sparsity``."""
        return sparsity(of_inputs(self.function, self.inputs))

    def pack(self, **values: ArrayLike) -> Vector:
        """Return the vector of values by name, such as a start.

        Raises
        ------
        PointError
            A value is missing, unknown or of the wrong shape.
        """
        alone = of_inputs(self.function, self.inputs)
        return _joined([_vector(value).ravel() for value in alone.arranged((), values)])

    def unpack(self, x: ArrayLike) -> dict[str, Any]:
        """Return the values of each input, such as those of a solution.

        Raises
        ------
        PointError
            `x` does not have n elements.
        """
        alone = of_inputs(self.function, self.inputs)
        return dict(zip(self.inputs, alone.split(host_numbers(x, POINT)), strict=True))

    @property
    def _several(self) -> bool:
        """Whether a value is a vector."""
        return self.function.output_shapes != ((),)

    @cached_property
    def _value(self) -> Callable[[Vector], Any]:
        return self._compiled(self.function)

    @cached_property
    def _jacobian(self) -> Callable[[Vector], Any]:
        if self.sparse and self._several:
            return self._expanded(self.function, sparse_jacobian)
        transform = jacobian if self._several else gradient
        return self._compiled(transform(self.function, wrt=self.inputs))

    @cached_property
    def _hessian(self) -> Callable[[Vector], Any]:
        function = _weighted(self.function) if self._several else self.function
        if self.sparse:
            return self._expanded(function, sparse_hessian)
        return self._compiled(hessian(function, wrt=self.inputs))

    @cached_property
    def _product(self) -> Callable[[Vector], Any]:
        require_scalar(self.function, "hessp", "hess(x, v)")
        return self._compiled(hvp(self.function))

    def _expanded(
        self, function: Function, transform: Callable[[Function], SparseDerivative]
    ) -> Callable[[Vector], Any]:
        """Return a sparse derivative by the variables."""
        derivative = transform(of_inputs(function, self.inputs))
        call = self._compiled(with_inputs(derivative.function, function))
        return lambda x: derivative.expand(call(x))

    def _compiled(self, function: Function) -> Callable[[Vector], Any]:
        """Return a compiled function of a vector, evaluated by NumPy where that is complex."""
        call = compile(function, self.target, self.threads, packed=True)
        return lambda x: _at_complex(function, x) if x.dtype.kind == "c" else call(x)

    def __repr__(self) -> str:
        kind = "sparse" if self.sparse else "dense"
        return (
            f"<problem of ({shortened(self.inputs)}): {counted(self.m, 'output')}, "
            f"{kind} derivatives>"
        )


def _constants(f: Function, constants: Mapping[str, ArrayLike] | None) -> dict[str, Any]:
    """Return the value of each constant, checked against its input."""
    shapes = dict(zip(f.inputs, f.input_shapes, strict=True))
    values: dict[str, Any] = {}
    if constants is not None and not isinstance(constants, Mapping):
        raise InputError(f"constants are values by name, not a {type(constants).__name__}")
    for name, value in (constants or {}).items():
        if name not in shapes:
            raise InputError(
                f"constants have a value of {name!r}, which is no input",
                hint=f"the inputs are {shortened(f.inputs)}",
            )
        checked = checked_value(value, name, shapes[name])
        values[name] = host_reals(checked, f"the constant {name!r}")
        if values[name].shape != shapes[name]:
            raise InputError(
                f"the constant {name!r} has the shape {values[name].shape}, "
                f"its input the shape {shapes[name]}"
            )
    return values


def _of_variables(f: Function, constants: Mapping[str, Any], time: str | None) -> Function:
    """Return the function of the variables: a number, or one vector of all outputs.

    With `time` that is the first input, and the value always a vector.
    """
    if time is not None and dict(zip(f.inputs, f.input_shapes, strict=True)).get(time, ()) != ():
        raise InputError(f"the time {time!r} is an array, not a number")
    if time is not None and (not isinstance(time, str) or time in constants):
        raise InputError(f"time is the name of an input that is no constant, not {time!r}")
    builder = Builder(f.graph.source, simplify=True)
    nodes = {} if time is None else {time: builder.input(time)}
    for name, shape in zip(f.inputs, f.input_shapes, strict=True):
        if name in constants:
            nodes[name] = _constant(builder, constants[name])
        else:
            nodes[name] = builder.input(name, shape)
    outputs = inline(f, builder, [nodes[name] for name in f.inputs])
    inputs = [node for name, node in nodes.items() if name not in constants]
    if time is not None or f.output_shapes != ((),):
        ranks = tuple(len(shape) for shape in f.output_shapes)
        outputs = [builder.emit(pack, outputs, (("ranks", ranks),))]
    return Function.build(builder, inputs, outputs, ["value"])


def _constant(builder: Builder, value: NDArray[np.float64]) -> int:
    if value.shape == ():
        return builder.constant(value.item())
    params = (("shape", value.shape), ("values", value.tobytes()))
    return builder.emit(constant_array, (), params)


def _weighted(function: Function) -> Function:
    """Return ⟨v, f(x)⟩ as a function of x and v."""
    builder = Builder.continuing(function.graph)
    name = WEIGHTS
    while name in function.inputs:
        name += "_"
    weights = Node(builder, builder.input(name, (function.m,)))
    product = multiply(weights, Node(builder, function.outputs[0]))
    total: Node = sum_(product, axes=(-1,), rank=1)
    inputs = [*function.input_nodes, weights.id]
    return Function.build(builder, inputs, [total.id], ["value"])


def _joined(parts: Any) -> Vector:
    """Return one vector of all parts of a point: of float64, or complex for the complex step."""
    vectors = [_vector(part) for part in parts]
    if len(vectors) == 1:
        return vectors[0]
    return np.concatenate([np.atleast_1d(vector) for vector in vectors])


def _vector(part: Any) -> Vector:
    array = host_numbers(part, POINT)
    return array if array.dtype.kind == "c" else host_reals(array, POINT)


def _at_complex(function: Function, x: NDArray[Any]) -> Any:
    """Return the value of an analytic function at a complex vector.

    Raises
    ------
    UnsupportedError
        An operation of the function is not analytic.
    """
    require_analytic(function)
    return function(*function.split(x))

"""Which way of differentiating a function is right, and what each one costs.

Functions, from text and from Python
    parse                a formula or a program of the language, as a Function
    trace                Python code written with NumPy, as a Function
    Function             a graph with inputs; str(f), f.draw(), f.trace(at), f.passes() show it
    from_sympy           a formula of SymPy; from_latex, from_fpcore, from_onnx, from_jax and
                         from_casadi read other formats, to_onnx writes one
    compile              a Function as fast Python, NumPy, machine code or CUDA
    apply                a compiled Function at the points of a file larger than memory
    jit                  a Python callable, traced and compiled when it is called
    count, evaluate      its sizes: tree, DAG, operations; its values of any kind, as of mpmath
    stabilise            rewrite what overflows or cancels
    arrays, random       array functions to write traced code with; random numbers of a key

Derivatives of a Function, each a Function again
    gradient             of one output number; value_and_gradient gives both
    jacobian             of all outputs by all inputs
    hessian              second derivatives of one output number
    partial              one entry of any order, such as ∂³/∂x∂y²
    sparse_jacobian      with compressed sweeps, by coloring; sparse_hessian

Derivatives of any Python callable, with JAX's signatures
    grad, value_and_grad, jacfwd, jacrev, jvp, vjp, hvp, linearize, vmap, stop_gradient
    jet, taylor          derivatives of every order along a curve, in one sweep
    laplacian, biharmonic, divergence, curl, directional
                         differential operators, in the way of the fewest operations
    cond, scan, fori_loop, while_loop                    control flow, one node in a trace

Comparing
    compare              every method on one function; columns makes its result a dataframe
    differentiate        one derivative by one method, with an error estimate
    methods              the methods that are installed, and what each can do
    enclose              proved bounds of value and derivatives, at a point or over a box
    problem, problems    the library of problems, with reference derivatives
    prove                a derivative graph is right on a box, with a certificate
    error_budget         where digits are lost; cheapest_dtypes finds how few bits are enough
    explain              where a nan, an infinity or a zero gradient comes from

Tensors that record while they compute, with PyTorch's names
    tensor, Tensor, no_grad, enable_grad, inference_mode, checkpoint, checkpoint_chain,
    checkpoint_with, name, policies, CustomFunction, detect_anomaly, memory, and difflab.eager.grad
    solve                programs that solve: root, fixed_point, minimize, linear, quad, ivp
    nn, optim            layers, losses and optimizers; fold_batch_norm simplifies what is trained

Everything raised is a DifflabError. The checkers for tests are in `difflab.testing`.

Examples
--------
>>> import difflab as dl
>>> f = dl.parse("ln(x1) + x1*x2 - sin(x2)")
>>> gradient = dl.gradient(f)
>>> gradient(2.0, 5.0)
array([5.5       , 1.71633781])
"""

# This module is the public API and nothing else: every name is found on its floor of the house
# when it is first asked for (PEP 562), so that ``import difflab`` loads nothing. It may name every
# floor; no floor uses more of it than the version, and a Function its methods that lie above it.

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from difflab import arrays as arrays
    from difflab import nn as nn
    from difflab import optim as optim
    from difflab import solve as solve
    from difflab.arrays import random as random
    from difflab.autodiff import biharmonic as biharmonic
    from difflab.autodiff import curl as curl
    from difflab.autodiff import directional as directional
    from difflab.autodiff import divergence as divergence
    from difflab.autodiff import grad as grad
    from difflab.autodiff import gradient as gradient
    from difflab.autodiff import hessian as hessian
    from difflab.autodiff import hvp as hvp
    from difflab.autodiff import jacfwd as jacfwd
    from difflab.autodiff import jacobian as jacobian
    from difflab.autodiff import jacrev as jacrev
    from difflab.autodiff import jet as jet
    from difflab.autodiff import jvp as jvp
    from difflab.autodiff import laplacian as laplacian
    from difflab.autodiff import linearize as linearize
    from difflab.autodiff import partial as partial
    from difflab.autodiff import policies as policies
    from difflab.autodiff import stop_gradient as stop_gradient
    from difflab.autodiff import taylor as taylor
    from difflab.autodiff import value_and_grad as value_and_grad
    from difflab.autodiff import value_and_gradient as value_and_gradient
    from difflab.autodiff import vjp as vjp
    from difflab.autodiff import vmap as vmap
    from difflab.autodiff.control.branches import cond as cond
    from difflab.autodiff.control.loops import fori_loop as fori_loop
    from difflab.autodiff.control.loops import scan as scan
    from difflab.autodiff.policies.policy import name as name
    from difflab.autodiff.sparsity import sparse_hessian as sparse_hessian
    from difflab.autodiff.sparsity import sparse_jacobian as sparse_jacobian
    from difflab.diagnose import explain as explain
    from difflab.eager import Tensor as Tensor
    from difflab.eager import checkpoint as checkpoint
    from difflab.eager import checkpoint_chain as checkpoint_chain
    from difflab.eager import checkpoint_with as checkpoint_with
    from difflab.eager import detect_anomaly as detect_anomaly
    from difflab.eager import enable_grad as enable_grad
    from difflab.eager import inference_mode as inference_mode
    from difflab.eager import memory as memory
    from difflab.eager import no_grad as no_grad
    from difflab.eager import tensor as tensor
    from difflab.errors import DifflabError as DifflabError
    from difflab.execute import compile as compile
    from difflab.execute.jit.jit import jit as jit
    from difflab.execute.while_loops import while_loop as while_loop
    from difflab.graph.counts import count as count
    from difflab.graph.custom.function import CustomFunction as CustomFunction
    from difflab.graph.function import Function as Function
    from difflab.graph.function import evaluate as evaluate
    from difflab.graph.passes.batch_norm import fold_batch_norm as fold_batch_norm
    from difflab.graph.trace import trace as trace
    from difflab.interop.formats.casadi import from_casadi as from_casadi
    from difflab.interop.formats.fpcore import from_fpcore as from_fpcore
    from difflab.interop.formats.jaxpr import from_jax as from_jax
    from difflab.interop.formats.latex import from_latex as from_latex
    from difflab.interop.formats.onnx import from_onnx as from_onnx
    from difflab.interop.formats.onnx import to_onnx as to_onnx
    from difflab.interop.formats.sympy import from_sympy as from_sympy
    from difflab.interop.large import apply as apply
    from difflab.lab.problems import problem as problem
    from difflab.lab.problems import problems as problems
    from difflab.language import parse as parse
    from difflab.methods.differentiate import differentiate as differentiate
    from difflab.methods.registry import describe
    from difflab.proof import enclose as enclose
    from difflab.proof import prove as prove
    from difflab.report.columns import columns as columns
    from difflab.report.comparison.result import compare as compare
    from difflab.report.rounding.result import cheapest_dtypes as cheapest_dtypes
    from difflab.report.rounding.result import error_budget as error_budget
    from difflab.stabilisation.proof import stabilise as stabilise

    methods = describe

__version__ = "0.2.0"

_HOMES = {
    "CustomFunction": "difflab.graph.custom.function",
    "DifflabError": "difflab.errors",
    "Function": "difflab.graph.function",
    "Tensor": "difflab.eager",
    "apply": "difflab.interop.large",
    "cheapest_dtypes": "difflab.report.rounding.result",
    "biharmonic": "difflab.autodiff",
    "checkpoint": "difflab.eager",
    "checkpoint_chain": "difflab.eager",
    "checkpoint_with": "difflab.eager",
    "columns": "difflab.report.columns",
    "compare": "difflab.report.comparison.result",
    "compile": "difflab.execute",
    "cond": "difflab.autodiff.control.branches",
    "count": "difflab.graph.counts",
    "curl": "difflab.autodiff",
    "detect_anomaly": "difflab.eager",
    "differentiate": "difflab.methods.differentiate",
    "directional": "difflab.autodiff",
    "divergence": "difflab.autodiff",
    "enable_grad": "difflab.eager",
    "enclose": "difflab.proof",
    "error_budget": "difflab.report.rounding.result",
    "evaluate": "difflab.graph.function",
    "explain": "difflab.diagnose",
    "fold_batch_norm": "difflab.graph.passes.batch_norm",
    "fori_loop": "difflab.autodiff.control.loops",
    "from_casadi": "difflab.interop.formats.casadi",
    "from_fpcore": "difflab.interop.formats.fpcore",
    "from_jax": "difflab.interop.formats.jaxpr",
    "from_latex": "difflab.interop.formats.latex",
    "from_onnx": "difflab.interop.formats.onnx",
    "from_sympy": "difflab.interop.formats.sympy",
    "grad": "difflab.autodiff",
    "gradient": "difflab.autodiff",
    "hessian": "difflab.autodiff",
    "hvp": "difflab.autodiff",
    "inference_mode": "difflab.eager",
    "jacfwd": "difflab.autodiff",
    "jacobian": "difflab.autodiff",
    "jacrev": "difflab.autodiff",
    "jet": "difflab.autodiff",
    "jit": "difflab.execute.jit.jit",
    "jvp": "difflab.autodiff",
    "laplacian": "difflab.autodiff",
    "linearize": "difflab.autodiff",
    "memory": "difflab.eager",
    "name": "difflab.autodiff.policies.policy",
    "no_grad": "difflab.eager",
    "parse": "difflab.language",
    "partial": "difflab.autodiff",
    "problem": "difflab.lab.problems",
    "problems": "difflab.lab.problems",
    "prove": "difflab.proof",
    "scan": "difflab.autodiff.control.loops",
    "sparse_hessian": "difflab.autodiff.sparsity",
    "sparse_jacobian": "difflab.autodiff.sparsity",
    "stabilise": "difflab.stabilisation.proof",
    "stop_gradient": "difflab.autodiff",
    "taylor": "difflab.autodiff",
    "tensor": "difflab.eager",
    "to_onnx": "difflab.interop.formats.onnx",
    "trace": "difflab.graph.trace",
    "value_and_grad": "difflab.autodiff",
    "value_and_gradient": "difflab.autodiff",
    "vjp": "difflab.autodiff",
    "vmap": "difflab.autodiff",
    "while_loop": "difflab.execute.while_loops",
}
_METHODS = {
    "Function.draw": "difflab.report.drawn",
    "Function.explore": "difflab.explore.shown",
    "Function.passes": "difflab.report.passes",
    "Function.readable_latex": "difflab.interop.formats.tidy_latex",
    "Function.text": "difflab.language.printers",
    "Function.to_sympy": "difflab.interop.simplification",
    "Function.trace": "difflab.report.trace.shown",
}
_MODULES = {
    "arrays": "difflab.arrays",
    "interop": "difflab.interop",
    "methods": "difflab.methods",
    "nn": "difflab.nn",
    "optim": "difflab.optim",
    "policies": "difflab.autodiff.policies",
    "random": "difflab.arrays.random",
    "solve": "difflab.solve",
    "testing": "difflab.testing",
}

if not TYPE_CHECKING:  # which reads the imports above
    __all__ = list({"__version__", *_HOMES, *_MODULES} - {"interop", "testing"})


def __getattr__(name: str) -> object:
    """Find a public name on its floor, once."""
    from importlib import import_module

    if name in _MODULES:
        # Importing a subpackage binds its name here, so `dl.methods` is the package in any
        # case; the package itself can be called.
        return import_module(_MODULES[name])
    if name in _METHODS:
        return getattr(import_module(_METHODS[name]), name.removeprefix("Function."))
    if name not in _HOMES:
        raise AttributeError(f"module 'difflab' has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})

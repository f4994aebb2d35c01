"""Array functions over anything with a shape: NumPy arrays, traced values, tensors.

Each is one row of the table or a composition of a few, with NumPy's names and meaning. Used in
traced code they write the graph; NumPy's own functions on traced values call them.

Examples
--------
>>> import numpy as np
>>> from difflab.arrays import softmax
>>> softmax(np.array([1000.0, 1000.0])).tolist()
[0.5, 0.5]
"""

from difflab.arrays.given import Axis
from difflab.arrays.linalg import cholesky, cofactor, det, inv, logdet, solve
from difflab.arrays.network import (
    batch_norm,
    conv2d,
    cross_entropy,
    gelu,
    layer_norm,
    leaky_relu,
    max_pool,
    mse,
)
from difflab.arrays.products import dot, einsum, matmul, outer, trace
from difflab.arrays.reductions import (
    argmax,
    cumsum,
    log_softmax,
    logsumexp,
    max,
    mean,
    min,
    norm,
    prod,
    softmax,
    sum,
)
from difflab.arrays.shapes import (
    broadcast_to,
    concatenate,
    diag,
    diagonal,
    pad,
    reshape,
    squeeze,
    stack,
    take,
    transpose,
)
from difflab.arrays.trigonometric import (
    acot,
    acoth,
    acsc,
    acsch,
    asec,
    asech,
    cot,
    coth,
    csc,
    csch,
    sec,
)

__all__ = [
    "Axis",
    "acot",
    "acoth",
    "acsc",
    "acsch",
    "argmax",
    "asec",
    "asech",
    "batch_norm",
    "broadcast_to",
    "cholesky",
    "cofactor",
    "concatenate",
    "conv2d",
    "cot",
    "coth",
    "cross_entropy",
    "csc",
    "csch",
    "cumsum",
    "det",
    "diag",
    "diagonal",
    "dot",
    "einsum",
    "gelu",
    "inv",
    "layer_norm",
    "leaky_relu",
    "log_softmax",
    "logdet",
    "logsumexp",
    "matmul",
    "max",
    "max_pool",
    "mean",
    "min",
    "mse",
    "norm",
    "outer",
    "pad",
    "prod",
    "reshape",
    "sec",
    "softmax",
    "solve",
    "squeeze",
    "stack",
    "sum",
    "take",
    "trace",
    "transpose",
]

"""Sparse derivatives: which entries can be other than zero, and how few sweeps find them.

May import the sweeps and transforms, `graph`, `primitives`, `core`, `errors`; SciPy.
"""

from difflab.autodiff.sparsity.transforms import (
    SparseDerivative,
    sparse_hessian,
    sparse_jacobian,
    sparsity,
)

__all__ = ["SparseDerivative", "sparse_hessian", "sparse_jacobian", "sparsity"]

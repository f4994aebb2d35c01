"""Sparse derivatives: which entries can be other than zero, and how few sweeps find them."""

from difflab.autodiff.sparsity.transforms import (
    SparseDerivative,
    sparse_hessian,
    sparse_jacobian,
    sparsity,
)

__all__ = ["SparseDerivative", "sparse_hessian", "sparse_jacobian", "sparsity"]

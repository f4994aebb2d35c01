"""Sparse derivatives: structural nonzeros, and the few sweeps that compute them."""

from difflab.autodiff.sparsity.transforms import (
    SparseDerivative,
    sparse_hessian,
    sparse_jacobian,
    sparsity,
)

__all__ = ["SparseDerivative", "sparse_hessian", "sparse_jacobian", "sparsity"]

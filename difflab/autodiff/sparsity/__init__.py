"""Sparse derivatives: structural nonzeros, and the few sweeps that compute them."""

from difflab.autodiff.sparsity.derivative import SparseDerivative
from difflab.autodiff.sparsity.transforms import sparse_hessian, sparse_jacobian, sparsity

__all__ = ["SparseDerivative", "sparse_hessian", "sparse_jacobian", "sparsity"]

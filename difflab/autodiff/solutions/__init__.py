"""Solvers as graphs, and the derivatives of their solutions (the implicit function theorem)."""

"""Derivatives of solvers' results, against the true derivative of the solution."""

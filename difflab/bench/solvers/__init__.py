"""Derivatives of what solvers return, against the true derivative of the solution."""

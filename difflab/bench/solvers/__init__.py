"""Derivatives of what solvers return, against the proved derivative of the solution."""

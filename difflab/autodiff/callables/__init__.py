"""Derivatives of Python functions under JAX's names; applied to a Function they return a Function."""

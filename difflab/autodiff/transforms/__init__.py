"""Derivatives of callables under JAX's names; applied to a Function they return a Function."""

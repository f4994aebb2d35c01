"""Derivatives of Python functions under JAX's names; given a Function they return a Function."""

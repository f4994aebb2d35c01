"""Functions written with JAX."""

from difflab.interop.formats.jaxpr.reader import from_jax

__all__ = ["from_jax"]

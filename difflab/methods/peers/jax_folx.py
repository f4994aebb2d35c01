"""folx: the forward Laplacian of JAX code, which carries value, Jacobian and Laplacian together.

Comparisons have first derivatives and Hessians and no Laplacian. Order 1 is the Jacobian that folx
carries; order 2 is assembled from Laplacians of the function on lines, each of one variable.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from difflab.errors import UnsupportedError
from difflab.methods.peers.jax_jet import AlongLines


class JaxFolx(AlongLines):
    """folx's ``forward_laplacian``, in float64."""

    name = "jax-folx"
    title = "folx"
    package = "folx"
    packages = ("folx", "jax", "jaxlib")
    extra = "folx"
    modules = ("jax",)
    summary = "folx: forward Laplacians of JAX code, Hessians by those on lines, in float64"

    def start(self) -> None:
        """Import the package, which logs every operation that it has no rule for."""
        super().start()
        logging.getLogger("folx").setLevel(logging.CRITICAL)

    def along(self, f: Callable[[Any], Any], x: Any, v: Any) -> tuple[Any, Any, Any]:
        """Return value, slope and Laplacian of the function of one variable."""
        import folx
        import jax

        laplacian = folx.forward_laplacian(lambda t: f(x + t[0] * v))(jax.numpy.zeros(1))
        return laplacian.x, laplacian.jacobian.dense_array[0], laplacian.laplacian

    def first(self, f: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
        """Return the value and the Jacobian that the forward Laplacian carries."""
        import folx

        try:
            laplacian = folx.forward_laplacian(f)(x)
        except AssertionError as error:
            raise UnsupportedError(f"folx has no rule for it: {error}") from error
        return laplacian.x, laplacian.jacobian.dense_array.T


JAX_FOLX = JaxFolx()

"""`stop_gradient`: a value through which no derivative flows."""

from __future__ import annotations

from typing import Any

import numpy as np

from difflab import primitives as rows
from difflab.arrays.given import as_array
from difflab.core.apply import module_of
from difflab.graph.pytree import flatten, unflatten


def stop_gradient(x: Any) -> Any:
    """Return `x`, as a constant of every derivative: its tangent and its cotangent are zero.

    In a trace it is one operation, in every target and at every order; a tensor loses its tape,
    as by ``detach``. Methods that differentiate values, such as finite differences and SymPy,
    see the identity.

    Parameters
    ----------
    x : tree
        Scalars, arrays, tensors and traced values, or tuples, lists and dicts of them.

    Returns
    -------
    tree
        Of the same structure and values.

    Examples
    --------
    >>> import difflab as dl
    >>> float(dl.grad(lambda x: x * dl.stop_gradient(x))(3.0))
    3.0
    >>> x = dl.tensor(3.0, requires_grad=True)
    >>> (x * dl.stop_gradient(x)).backward()
    >>> x.grad
    tensor(3.)
    """
    leaves, structure = flatten(x)
    return unflatten(structure, [_stopped(leaf) for leaf in leaves])


def _stopped(leaf: Any) -> Any:
    """Return a leaf without its derivative; truth values have none."""
    if hasattr(leaf, "__difflab_apply__"):
        return leaf if leaf.dtype == np.bool_ else rows.stop_gradient(leaf)
    value = as_array(leaf)
    return module_of(value).array(value) if getattr(value, "shape", ()) else value

"""`CustomFunction`: a user-defined operation with a hand-written derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

from difflab.errors import InputError
from difflab.graph.custom.call import CustomCall
from difflab.graph.custom.rows import applied
from difflab.graph.node import Node, innermost_trace
from difflab.graph.values import precision_of


class CustomFunction:
    """A user-defined operation and derivative, for arrays, tensors and traced values.

    Subclasses have static methods, and are applied by ``MyFunction.apply(*args)``:

    - ``forward(ctx, *args)`` computes the value, an array or a tuple of arrays, and saves what
      the derivative reads by ``ctx.save_for_backward(*arrays)``; scalars may be set as
      attributes of `ctx`.
    - ``backward(ctx, *cotangents)`` takes a cotangent ȳ of every output, finds what was saved in
      ``ctx.saved_tensors``, and returns a cotangent x̄ = Jᵀ ȳ for every argument of `forward` but
      `ctx`; None for those without derivative.
    - ``jvp(ctx, *tangents)`` takes a tangent ẋ of every argument, None for those that are no
      arrays, and returns the tangent ẏ = J ẋ of every output.

    One rule suffices for its mode; a derivative in the other mode raises an
    `UnsupportedError`. Arguments that are tensors, traced values or NumPy arrays can
    be differentiated by; all others (Python scalars, texts, …) are settings.

    Notes
    -----
    In a graph the operation is one node, whose value `forward` computes on arrays when the graph
    is evaluated. Rules written with NumPy's functions are recorded like any code, so they can be
    differentiated again and drawn; others are called when the derivative is evaluated. Where
    `forward` cannot be recorded it is run once on values between 1 and 2, for the shapes.
    A cotangent that is wider than its argument is summed over the axes along which the argument
    was broadcast. `difflab.testing.check_custom_function` checks the rules against each other
    and against numeric differentiation.

    Examples
    --------
    Swish, x·σ(x) (Ramachandran, Zoph, Le, 2017), whose slope is σ(x)·(1 + x·(1 - σ(x))):

    >>> import numpy as np
    >>> import difflab as dl
    >>> class Swish(dl.CustomFunction):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         s = 1 / (1 + np.exp(-x))
    ...         ctx.save_for_backward(x, s)
    ...         return x * s
    ...
    ...     @staticmethod
    ...     def backward(ctx, y_bar):
    ...         x, s = ctx.saved_tensors
    ...         return y_bar * s * (1 + x * (1 - s))
    >>> x = dl.tensor([0.0, 1.0], requires_grad=True)
    >>> np.sum(Swish.apply(x)).backward()
    >>> x.grad
    tensor([0.5       , 0.92767051])
    >>> dl.grad(lambda x: np.sum(Swish.apply(x)))(np.array([0.0, 1.0]))
    array([0.5       , 0.92767051])
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        rules = (getattr(cls, "backward", None), getattr(cls, "jvp", None))
        if hasattr(cls, "forward") and rules == (None, None):
            raise InputError(
                f"{cls.__name__} has a forward, and neither backward nor jvp",
                hint="give it a static method backward(ctx, *cotangents) or jvp(ctx, *tangents)",
            )

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Compute the value on arrays; on tensors and traced values record it too.

        Parameters
        ----------
        *args
            The arguments of `forward` after `ctx`.

        Returns
        -------
        array, tensor or traced value, or a tuple of them
            As `forward` returns it.

        Raises
        ------
        InputError
            There is no `forward`, or its result is not numeric.
        """
        if not hasattr(cls, "forward"):
            raise InputError(f"{cls.__name__} has no forward(ctx, *args)")
        call, arrays = CustomCall.of(cls, args)
        carrier = next((arg for arg in arrays if hasattr(arg, "__difflab_custom__")), None)
        if carrier is not None:
            outputs, single = carrier.__difflab_custom__(call, arrays)
        elif (traced := innermost_trace(arrays)) is not None:
            builder, nodes = traced
            kinds = map(precision_of, arrays)
            operands = [Node(builder, *pair) for pair in zip(nodes, kinds, strict=True)]
            outputs, single = applied(call, operands)
        else:
            ran = call.run(arrays)
            outputs, single = [_own(output) for output in ran.outputs], ran.single
        return outputs[0] if single else tuple(outputs)


def _own(output: Any) -> Any:
    """Return a writable output, also if it is an unchanged argument."""
    read_only = isinstance(output, np.ndarray) and not output.flags.writeable
    return output.copy() if read_only else output

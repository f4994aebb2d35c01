"""Recordings of user code, compared with a run of that code on plain arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from difflab.autodiff.recording import Recording, record
from difflab.graph.arguments import Arguments
from difflab.graph.code import Code
from difflab.graph.pytree import LEAF
from difflab.graph.rewritten import selected
from difflab.graph.trace import parameter_names
from difflab.graph.verify import packed, require_same, require_same_slope


def verified(
    recording: Recording,
    function: Callable[..., Any],
    call: Callable[[Sequence[Any]], Any],
    values: Sequence[Any],
    *,
    has_aux: bool = False,
    at_point: bool = True,
) -> None:
    """Raise an error unless a recording has the results of its code.

    On tensors and on values of a trace around this one there is nothing to compare.

    Parameters
    ----------
    recording : Recording
        The recording.
    function : callable
        The user's function, for messages.
    call : callable
        Calls it with these leaves, traced or not.
    values : sequence
        The leaves.
    has_aux : bool
        Whether the second of two results is auxiliary data.
    at_point : bool
        Whether the code knew the values, so that the graph may have the branches of this point
        and constants in place of values: its changes to points beside this one are compared too.

    Raises
    ------
    difflab.errors.GraphMismatchError
        The values, or the changes, differ beyond rounding.
    """
    inputs = [*values, *recording.captured]
    if any(hasattr(value, "__difflab_apply__") for value in inputs):
        return
    names = parameter_names(function, len(inputs))
    arguments = Arguments(tuple(names), (LEAF,) * len(inputs))

    def run(*leaves: Any) -> Any:
        result = call(leaves[: len(values)])
        return result[0] if has_aux else result

    whole, count = recording.function, recording.results
    graph = selected(whole, whole.outputs[:count], whole.output_names[:count])
    code, x = Code.of(run, arguments, inputs, getattr(function, "__name__", "f")), packed(inputs)
    shapes = [np.shape(value) for value in values]
    code_run = code.run(x, generators_of=function)
    known = values if at_point else None
    require_same(graph, code, x, code_run, lambda: record(call, shapes, has_aux, known))
    if at_point:
        require_same_slope(graph, code, x, len(packed(values)), code_run.values)

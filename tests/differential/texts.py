"""``parse(str(f))`` against `f`: functions of arrays and their derivatives, to the last bit.

The programs are those of the family `arrays`. The text has plain operations in place of companions
such as ``dlog``, which are guarded where they are undefined: it is held to those.
"""

from __future__ import annotations

import numpy as np

import difflab as dl
from difflab.graph.passes.expansion import expanded
from tests.differential.arrays import Program, bits, formed, listed, programs
from tests.differential.search import Family


def check(program: Program) -> None:
    """Hold the function that is read back to the one that was written."""
    function = formed(program)
    if any(0 in shape for shape in function.graph.shape_table):
        return  # the language has no arrays without elements
    written = str(function)
    again = dl.parse(written)
    assert set(again.inputs) == set(function.inputs), written
    assert again.output_shapes == function.output_shapes, written
    assert str(dl.parse(str(again))) == str(again), written
    for number in range(2):
        given = dict(zip(function.inputs, program.point(number), strict=True))
        wanted = listed(expanded(function)(**given))
        for found, right in zip(listed(again(**given)), wanted, strict=True):
            assert np.shape(found) == np.shape(right), written
            assert bits(found) == bits(right), f"{found} for {right} of\n{written}"


FAMILY = Family("texts", programs(), check, fixed=300, fresh=100)

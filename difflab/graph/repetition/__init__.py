"""Repetition: many scalars computed in the same way become a few operations on vectors.

A hundred thousand terms of one shape are one term over a hundred thousand indices. It is found
by structure alone, whatever the origin of the graph:

- `chains` finds long sums, whose partial sums would otherwise put every term on a level of its
  own;
- `classes` partitions scalars by operation and by the classes of their arguments;
- `writing` gives each class one operation on a vector, with slices of the vectors before it;
- `roll` puts them together, and leaves a function as it is where that gains little. It also makes
  one vector of many inputs, so that they are lanes like others, and turns the long sums into
  trees, for evaluations that change one term at a time.
"""

from difflab.graph.repetition.classes import element_indices
from difflab.graph.repetition.roll import LEAST_LANES, LEAST_NODES, balanced, flattened, rolled

__all__ = [
    "LEAST_LANES",
    "LEAST_NODES",
    "balanced",
    "element_indices",
    "flattened",
    "rolled",
]

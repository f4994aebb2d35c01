"""Array functions over anything with a shape: NumPy arrays, traced values, tensors.

Each is one row of the table or a composition of a few, with NumPy's names and meaning. Used in
traced code they write the graph; NumPy's own functions on traced values call them.

Examples
--------
>>> import numpy as np
>>> from difflab.arrays import softmax
>>> softmax(np.array([1000.0, 1000.0])).tolist()
[0.5, 0.5]
"""

from difflab.arrays import (
    complex_array,
    factors,
    linalg,
    network,
    products,
    reductions,
    shapes,
    trigonometric,
)
from difflab.arrays.complex_array import *
from difflab.arrays.factors import *
from difflab.arrays.given import Axis
from difflab.arrays.linalg import *
from difflab.arrays.network import *
from difflab.arrays.products import *
from difflab.arrays.reductions import *
from difflab.arrays.shapes import *
from difflab.arrays.trigonometric import *

__all__ = ["Axis"]
# Spelled out, because this is the form that type checkers can follow.
__all__ += complex_array.__all__
__all__ += factors.__all__
__all__ += linalg.__all__
__all__ += network.__all__
__all__ += products.__all__
__all__ += reductions.__all__
__all__ += shapes.__all__
__all__ += trigonometric.__all__

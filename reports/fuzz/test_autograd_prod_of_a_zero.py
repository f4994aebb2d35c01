"""autograd 1.9.1: the gradient of `prod` is nan where one element is 0.

Its rule divides the product by the element. The derivative with respect to an element is the
product of the others; the same by differences of mpmath values: 8.
"""

import mpmath
import numpy
import pytest

autograd = pytest.importorskip("autograd")


def test_the_gradient_of_a_product_with_a_zero_is_the_product_of_the_others():
    """Of (2 a) (2 b) (2 c) at (1, 1, 0)."""
    found = autograd.grad(lambda v: autograd.numpy.prod(2 * v))(numpy.array([1.0, 1.0, 0.0]))
    assert found[2] == mpmath.diff(lambda c: (2 * 1) * (2 * 1) * (2 * c), 0) == 8

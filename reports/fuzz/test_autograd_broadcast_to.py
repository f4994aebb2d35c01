"""autograd 1.9.1: `broadcast_to` to a shape with more axes raises in the reverse sweep.

NumPy's `broadcast_to` adds leading axes, and so does autograd's on plain arrays.
"""

import pytest

autograd = pytest.importorskip("autograd")


def test_the_gradient_of_a_broadcast_scalar_is_the_number_of_its_copies():
    """The sum of three copies of s has the derivative 3."""
    np = autograd.numpy
    assert autograd.grad(lambda s: np.sum(np.broadcast_to(s, (3,))))(1.0) == 3.0

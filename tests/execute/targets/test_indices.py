"""Static indices, few as a tuple and many as bytes, on every target."""

import numpy as np
import pytest

import difflab as dl
from difflab.core.apply import apply
from difflab.primitives import put
from difflab.primitives.movement import LISTED, as_places

SIZES = (3, LISTED, LISTED + 1, 300)


def chosen(count):
    """Indices without a pattern, some of them twice."""
    found = np.random.default_rng(count).integers(0, 400, count)
    found[1] = found[0]
    return found


@pytest.mark.parametrize("target", ["numpy", "native", "auto"])
@pytest.mark.parametrize("count", SIZES)
def test_entries_are_taken_and_put_where_numpy_does(count, target):
    if target == "native":
        pytest.importorskip("llvmlite")
    places = chosen(count)
    f = dl.trace(
        lambda x: (
            apply(put, np.sin(x)[places], places=as_places(places), axis=-1, rank=1, size=400) * 2.0
        ),
        np.ones(400),
    )
    fast = dl.compile(f, target=target)
    for x in (np.arange(400.0), np.arange(1200.0).reshape(3, 400)):
        wanted = np.zeros(x.shape)
        for point, out in zip(x.reshape(-1, 400), wanted.reshape(-1, 400), strict=True):
            np.add.at(out, places, 2.0 * np.sin(point[places]))
        np.testing.assert_allclose(fast(x), wanted, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("write", [lambda x, a: x[a], lambda x, a: np.take(x, a)])
def test_many_indices_are_no_python_integers(write):
    places = chosen(1000)
    f = dl.trace(lambda x: write(x, places), np.ones(400))
    for function in (f, dl.gradient(dl.trace(lambda x: np.sum(write(x, places)), np.ones(400)))):
        params = [function.graph.params(node) for node in range(len(function.graph))]
        used = [each["places"] for each in params if "places" in each]
        assert used
        assert all(isinstance(each, bytes) for each in used)


def test_equal_indices_are_one_node():
    places = chosen(1000)
    f = dl.trace(lambda x: x[places] + np.take(x, places.tolist()), np.ones(400))
    assert sum("places" in f.graph.params(node) for node in range(len(f.graph))) == 1


def test_the_text_of_many_indices_is_read_again():
    places = chosen(1000)
    f = dl.trace(lambda x: np.sin(x[places]), np.ones(400))
    again = dl.parse(str(f))
    x = np.arange(400.0)
    assert np.array_equal(again(x), np.sin(x[places]))

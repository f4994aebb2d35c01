"""Calls of NumPy's functions, as NumPy, JAX and difflab's values all take them.

A case is code over an array module and its arguments. Its keywords are NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.arrays.counterparts.fourier_cases import FOURIER
from tests.arrays.counterparts.special_cases import SPECIAL

__all__ = ["OF_DIFFERENCES", "OF_JAX", "Code"]

Code = Callable[..., Any]
RNG = np.random.default_rng(5)
M = RNG.normal(size=(3, 4))
S = RNG.normal(size=(4, 4))
T = RNG.normal(size=(2, 3, 4))
V, W = RNG.normal(size=6), RNG.normal(size=4)
X = np.sort(RNG.normal(size=6)) + np.arange(6.0)
N = M.copy()
N[0, 1] = N[2, 3] = np.nan
TIMES = np.array([1, 2, 1, 3])
ENDS, PAIR, TRIPLE = np.array([0, 5, -2]), np.array([1, 3]), np.array([0, 3, 3])
TWICE = np.array([2, 0, 1])
EDGES, QS = np.array([-0.5, 0.0, 0.25, 1.0]), np.array([0.1, 0.45, 0.9, 1.0])
SHARES = np.array([0.5, 0.25, 1.0, 0.75])

LAYOUT: dict[str, tuple[Code, tuple[Any, ...]]] = {
    "atleast_1d": (lambda np, x: np.atleast_1d(x[0]), (V,)),
    "atleast_2d": (lambda np, x: np.atleast_2d(x), (V,)),
    "atleast_3d": (lambda np, x: np.atleast_3d(x), (M,)),
    "atleast_3d of a vector": (lambda np, x: np.atleast_3d(x), (V,)),
    "atleast of several": (lambda np, x: np.atleast_2d(x, x[0])[1] * x, (V,)),
    "diag": (lambda np, x: np.diag(x, 1), (W,)),
    "diag below": (lambda np, x: np.diag(x, k=-2), (W,)),
    "diag of a matrix": (lambda np, x: np.diag(x), (M,)),
    "diag beside": (lambda np, x: np.diag(x, -1), (M,)),
    "diagflat": (lambda np, x: np.diagflat(x, 1), (M,)),
    "diagonal": (lambda np, x: np.diagonal(x, 1, 2, 0), (T,)),
    "diagonal of stacks": (lambda np, x: np.diagonal(x), (T,)),
    "expand_dims": (lambda np, x: np.expand_dims(x, (0, 2)), (M,)),
    "flip": (lambda np, x: np.flip(x), (M,)),
    "flip of axes": (lambda np, x: np.flip(x, (0, 2)), (T,)),
    "fliplr": (lambda np, x: np.fliplr(x), (M,)),
    "flipud": (lambda np, x: np.flipud(x), (M,)),
    "moveaxis": (lambda np, x: np.moveaxis(x, (0, 1), (-1, 0)), (T,)),
    "pad": (lambda np, x: np.pad(x, ((1, 0), (2, 1))), (M,)),
    "pad with constants": (
        lambda np, x: np.pad(x, 1, constant_values=((1.0, 2.0), (3.0, 4.0))),
        (M,),
    ),
    "pad by the edge": (lambda np, x: np.pad(x, ((1, 2), (0, 3)), mode="edge"), (M,)),
    "pad by reflection": (lambda np, x: np.pad(x, (4, 3), "reflect"), (M,)),
    "pad symmetric": (lambda np, x: np.pad(x, 2, "symmetric"), (M,)),
    "pad periodic": (lambda np, x: np.pad(x, ((5, 1), (0, 2)), "wrap"), (M,)),
    "ravel": (lambda np, x: np.ravel(x), (T,)),
    "roll": (lambda np, x: np.roll(x, 2), (M,)),
    "roll back": (lambda np, x: np.roll(x, -5, axis=1), (M,)),
    "roll of axes": (lambda np, x: np.roll(x, (1, 2), axis=(0, -1)), (T,)),
    "rollaxis": (lambda np, x: np.rollaxis(x, 2), (T,)),
    "rollaxis to": (lambda np, x: np.rollaxis(x, 0, 2), (T,)),
    "rot90": (lambda np, x: np.rot90(x), (M,)),
    "rot90 twice": (lambda np, x: np.rot90(x, 2), (M,)),
    "rot90 back": (lambda np, x: np.rot90(x, -1, (1, 2)), (T,)),
    "swapaxes": (lambda np, x: np.swapaxes(x, 0, 2), (T,)),
    "trace": (lambda np, x: np.trace(x, 1), (M,)),
    "trace of stacks": (lambda np, x: np.trace(x, -1, 1, 2), (T,)),
    "tril": (lambda np, x: np.tril(x, -1), (M,)),
    "triu": (lambda np, x: np.triu(x, 1), (T,)),
    "matrix_transpose": (lambda np, x: np.matrix_transpose(x), (T,)),
}
JOINING: dict[str, tuple[Code, tuple[Any, ...]]] = {
    "append": (lambda np, x, y: np.append(x, y), (M, V)),
    "append along": (lambda np, x, y: np.append(x, y, axis=0), (M, S)),
    "array_split": (lambda np, x: np.array_split(x, 4)[1] * np.array_split(x, 4)[3][0], (V,)),
    "block": (lambda np, x, y: np.block([[x, x[:, :1]], [y, y[:, 0].reshape(4, 1)]]), (M, S)),
    "block of vectors": (lambda np, x: np.block([x, x[:2], 1.0]), (V,)),
    "broadcast_arrays": (
        lambda np, x, y: np.broadcast_arrays(x, y)[0] * np.broadcast_arrays(x, y)[1],
        (M, W),
    ),
    "column_stack": (lambda np, x, y: np.column_stack((y, x, y)), (M.T, W)),
    "concatenate of all": (lambda np, x, y: np.concatenate([x, y], axis=None), (M, V)),
    "delete": (lambda np, x: np.delete(x, ENDS), (M,)),
    "delete along": (lambda np, x: np.delete(x, 1, axis=1), (M,)),
    "delete a slice": (lambda np, x: np.delete(x, slice(0, 4, 2), 0), (V,)),
    "dsplit": (lambda np, x: np.dsplit(x, 2)[1], (T,)),
    "dstack": (lambda np, x: np.dstack([x, 2.0 * x]), (M,)),
    "dstack of vectors": (lambda np, x: np.dstack([x, 2.0 * x]), (V,)),
    "hsplit": (lambda np, x: np.hsplit(x, [1, 3])[1], (M,)),
    "hsplit of a vector": (lambda np, x: np.hsplit(x, 3)[1], (V,)),
    "hstack": (lambda np, x, y: np.hstack((x, y)), (M.T, S)),
    "hstack of vectors": (lambda np, x, y: np.hstack((x, y, y[0])), (V, W)),
    "insert": (lambda np, x, y: np.insert(x, 2, y[0]), (V, W)),
    "insert along": (lambda np, x, y: np.insert(x, 1, y, axis=0), (M, W)),
    "insert columns": (lambda np, x, y: np.insert(x, PAIR, y[:3, :2], axis=1), (M, S)),
    "insert several": (lambda np, x, y: np.insert(x, TRIPLE, y[:3]), (V, W)),
    "meshgrid": (lambda np, x, y: np.multiply(*np.meshgrid(x, y)), (V, W)),
    "meshgrid ij": (lambda np, x, y: np.multiply(*np.meshgrid(x, y, indexing="ij")), (V, W)),
    "meshgrid sparse": (lambda np, x, y: np.subtract(*np.meshgrid(x, y, sparse=True)), (V, W)),
    "repeat": (lambda np, x: np.repeat(x, 2), (M,)),
    "resize": (lambda np, x: np.resize(x, (2, 5)), (V,)),
    "split": (lambda np, x: np.split(x, 2, axis=1)[1], (M,)),
    "split at": (lambda np, x: np.split(x, [2, 5])[1], (V,)),
    "tile": (lambda np, x: np.tile(x, 2), (M,)),
    "tile into axes": (lambda np, x: np.tile(x, (2, 1, 3)), (M,)),
    "unstack": (lambda np, x: np.unstack(x, axis=1)[2], (M,)),
    "vsplit": (lambda np, x: np.vsplit(x, 2)[0], (S,)),
    "vstack": (lambda np, x, y: np.vstack([x, y]), (M, W)),
    "vstack of vectors": (lambda np, x: np.vstack([x, x * x]), (V,)),
}
STATISTICS: dict[str, tuple[Code, tuple[Any, ...]]] = {
    "average": (lambda np, x: np.average(x, axis=0), (M,)),
    "average with weights": (lambda np, x, w: np.average(x, weights=w), (M, np.abs(M) + 0.1)),
    "average along": (lambda np, x: np.average(x, axis=1, weights=SHARES), (M,)),
    "average kept": (
        lambda np, x: np.average(x, axis=-1, weights=SHARES, keepdims=True),
        (M,),
    ),
    "average returned": (
        lambda np, x, w: np.multiply(*np.average(x, 1, w, returned=True)),
        (M, np.abs(M) + 0.1),
    ),
    "corrcoef": (lambda np, x: np.corrcoef(x), (M,)),
    "corrcoef of columns": (lambda np, x: np.corrcoef(x, rowvar=False)[0, 1:], (S,)),
    "cov": (lambda np, x: np.cov(x), (M,)),
    "cov of columns": (lambda np, x: np.cov(x, rowvar=False, bias=True), (M,)),
    "cov of two": (lambda np, x: np.cov(x[0], x[1], ddof=0), (M,)),
    "cov of a vector": (lambda np, x: np.cov(x), (V,)),
    "cov with counts": (lambda np, x: np.cov(x, fweights=TIMES), (M,)),
    "cov with weights": (lambda np, x: np.cov(x, aweights=SHARES), (M,)),
    "cov with both": (lambda np, x: np.cov(x, fweights=TIMES, aweights=SHARES), (M,)),
    "ptp": (lambda np, x: np.ptp(x), (M,)),
    "ptp along": (lambda np, x: np.ptp(x, axis=1, keepdims=True), (M,)),
    "std": (lambda np, x: np.std(x), (M,)),
    "std along": (lambda np, x: np.std(x, axis=0, ddof=1), (M,)),
    "std kept": (lambda np, x: np.std(x, axis=(0, 2), keepdims=True), (T,)),
    "var": (lambda np, x: np.var(x), (M,)),
    "var along": (lambda np, x: np.var(x, 1, ddof=1, keepdims=True), (M,)),
    "var of axes": (lambda np, x: np.var(x, axis=(1, 2)), (T,)),
    "nancumsum": (lambda np, x: np.nancumsum(x, axis=1), (N,)),
    "nanmax": (lambda np, x: np.nanmax(x, axis=0), (N,)),
    "nanmean": (lambda np, x: np.nanmean(x), (N,)),
    "nanmean along": (lambda np, x: np.nanmean(x, axis=1, keepdims=True), (N,)),
    "nanmin": (lambda np, x: np.nanmin(x, axis=(0, 1)), (N,)),
    "nanprod": (lambda np, x: np.nanprod(x, axis=1), (N,)),
    "nanstd": (lambda np, x: np.nanstd(x, axis=1), (N,)),
    "nansum": (lambda np, x: np.nansum(x, axis=0, keepdims=True), (N,)),
    "nanvar": (lambda np, x: np.nanvar(x, axis=1, ddof=1), (N,)),
}
SELECTION: dict[str, tuple[Code, tuple[Any, ...]]] = {
    "copysign": (lambda np, x, y: np.copysign(x, y), (V, X - 2)),
    "fmax": (lambda np, x, y: np.fmax(x, y), (N, M[::-1] + 0.1)),
    "fmin": (lambda np, x, y: np.fmin(x, y), (N, M[::-1] + 0.1)),
    "fmod": (lambda np, x, y: np.fmod(3.0 * x, y), (V, X[::-1] - 2.2)),
    "i0": (lambda np, x: np.i0(3.0 * x), (V,)),
    "ldexp": (lambda np, x: np.ldexp(x, np.array([1, -2, 0, 3, 1, 1])), (V,)),
    "logaddexp": (lambda np, x, y: np.logaddexp(x, y), (V, X)),
    "logaddexp2": (lambda np, x, y: np.logaddexp2(x, y), (V, X)),
    "modf": (lambda np, x: np.modf(3.0 * x)[0] * np.modf(3.0 * x)[1], (V,)),
    "nan_to_num": (lambda np, x: np.nan_to_num(x, nan=2.0), (N,)),
    "real": (lambda np, x: np.real(x) * np.conjugate(x) + np.imag(x), (V,)),
    "select": (
        lambda np, x: np.select([x < 0.0, x < 0.7], [x * x, np.sin(x)], default=-x),
        (V,),
    ),
    "piecewise": (
        lambda np, x: np.piecewise(x, [x < 0.7, x < 0.0], [lambda v: v * v, np.sin, 0.5]),
        (V,),
    ),
    "sinc": (lambda np, x: np.sinc(x) + np.sinc(x - V), (V,)),
    "vecdot": (lambda np, x, y: np.vecdot(x, y), (T, W)),
}
FLAT: dict[str, tuple[Code, tuple[Any, ...]]] = {
    "allclose": (lambda np, x: x * np.allclose(x, x + 1e-9) + np.allclose(x, x + 1), (V,)),
    "argmin": (lambda np, x: np.argmin(x, axis=1) * 1.0, (M,)),
    "array_equal": (lambda np, x: x * np.array_equal(x, x * 1.0), (V,)),
    "trunc": (lambda np, x: np.trunc(2.5 * x) + np.trunc(3.5 * x), (V,)),
    "heaviside": (lambda np, x: np.heaviside(x, 0.25) + np.heaviside(x * 0.0, 0.3), (V,)),
    "isclose": (
        lambda np, x: 1.0 * np.isclose(x, x + 1e-9) + 2.0 * np.isclose(x, 1.1 * x, rtol=0.2),
        (N,),
    ),
    "isclose of nan": (lambda np, x: 1.0 * np.isclose(x, x, equal_nan=True), (N,)),
    "isposinf": (lambda np, x: 1.0 * np.isposinf(x / 0.0) + 2.0 * np.isneginf(x / 0.0), (V,)),
    "nanargmax": (lambda np, x: np.nanargmax(x, axis=1) + 2.0 * np.nanargmin(x), (N,)),
    "signbit": (lambda np, x: 1.0 * np.signbit(x) + 2.0 * np.signbit(x * 0.0), (V,)),
}
PRODUCTS: dict[str, tuple[Code, tuple[Any, ...]]] = {
    "cross": (lambda np, x, y: np.cross(x, y), (V[:3], W[:3])),
    "cross along": (lambda np, x, y: np.cross(x, y, axis=0), (M, S[:3])),
    "dot of stacks": (lambda np, x, y: np.dot(x, y), (T, S)),
    "dot with a vector": (lambda np, x, y: np.dot(x, y), (T, W)),
    "inner": (lambda np, x, y: np.inner(x, y), (M, S)),
    "kron": (lambda np, x, y: np.kron(x, y), (M, S[:2])),
    "kron of ranks": (lambda np, x, y: np.kron(x, y), (V, M)),
    "polyval": (lambda np, p, x: np.polyval(p, x), (W, M)),
    "tensordot": (lambda np, x, y: np.tensordot(x, y), (T, M)),
    "tensordot of one": (lambda np, x, y: np.tensordot(x, y, axes=1), (T, S)),
    "tensordot of none": (lambda np, x, y: np.tensordot(x, y, 0), (W, V)),
    "tensordot along": (
        lambda np, x, y: np.tensordot(x, y, axes=([2, 1], [0, 1])),
        (T, S[:, :3]),
    ),
    "vander": (lambda np, x: np.vander(x, 3), (W,)),
    "vander increasing": (lambda np, x: np.vander(x, increasing=True), (W,)),
    "vdot": (lambda np, x, y: np.vdot(x, y), (M, M * M)),
}
CALCULUS: dict[str, tuple[Code, tuple[Any, ...]]] = {
    "cumulative_sum": (
        lambda np, x: np.cumulative_sum(x, axis=1, include_initial=True),
        (M,),
    ),
    "diff": (lambda np, x: np.diff(x), (M,)),
    "diff twice": (lambda np, x: np.diff(x, n=2, axis=0), (M,)),
    "diff with ends": (lambda np, x: np.diff(x, prepend=0.5, append=x[:, :2]), (M,)),
    "ediff1d": (lambda np, x: np.ediff1d(x, to_end=7.0, to_begin=x[:2]), (V,)),
    "gradient": (lambda np, x: np.gradient(x), (V,)),
    "gradient of axes": (lambda np, x: np.multiply(*np.gradient(x, 2.0, 0.5)), (M,)),
    "gradient along": (lambda np, x: np.gradient(x, 0.1, axis=1), (M,)),
    "linspace": (lambda np, x, y: np.linspace(x, y, 4), (W, V[:4])),
    "linspace open": (
        lambda np, x, y: np.linspace(x[0], y, 3, endpoint=False, axis=-1),
        (W, M),
    ),
    "trapezoid": (lambda np, y: np.trapezoid(y), (M,)),
    "trapezoid over": (lambda np, y, x: np.trapezoid(y, x, axis=0), (M, V[:3])),
    "trapezoid over each": (lambda np, y, x: np.trapezoid(y, x=x, axis=1), (M, M + S[:3])),
    "trapezoid in steps": (lambda np, y: np.trapezoid(y, dx=0.2, axis=0), (M,)),
    "unwrap": (lambda np, x: np.unwrap(4.0 * x), (M,)),
    "unwrap of a period": (lambda np, x: np.unwrap(4.0 * x, period=1.5, axis=0), (M,)),
}
ORDERING: dict[str, tuple[Code, tuple[Any, ...]]] = {
    "argsort": (lambda np, x: x * np.argsort(x), (M,)),
    "argsort of all": (lambda np, x: np.argsort(x, axis=None) * 1.0, (M,)),
    "argsort along": (lambda np, x: x * np.argsort(x, axis=0), (T,)),
    "convolve": (lambda np, x, y: np.convolve(x, y), (V, W)),
    "convolve same": (lambda np, x, y: np.convolve(y, x, "same"), (V, W)),
    "convolve valid": (lambda np, x, y: np.convolve(x, y, mode="valid"), (V, W)),
    "correlate": (lambda np, x, y: np.correlate(x, y), (V, W)),
    "correlate full": (lambda np, x, y: np.correlate(y, x, "full"), (V, W)),
    "correlate same": (lambda np, x, y: np.correlate(x, y, mode="same"), (V, W)),
    "cumprod": (lambda np, x: np.cumprod(x), (M,)),
    "cumprod along": (lambda np, x: np.cumprod(x, axis=0), (M,)),
    "cumulative_prod": (
        lambda np, x: np.cumulative_prod(x, axis=1, include_initial=True),
        (M,),
    ),
    "digitize": (lambda np, x: x * np.digitize(x, EDGES), (M,)),
    "digitize right": (lambda np, x: x * np.digitize(x, EDGES[::-1], right=True), (M,)),
    "interp": (lambda np, x, t, f: np.interp(4.0 * x, t, f), (M, X, V)),
    "interp beyond": (
        lambda np, x, t, f: np.interp(5.0 * x, t, f, left=f[2], right=7.0),
        (M, X, V),
    ),
    "interp of a number": (lambda np, x, t, f: np.interp(x[0], t, f), (V, X, V[::-1] * 1.0)),
    "interp of a period": (
        lambda np, x, t, f: np.interp(5.0 * x, 0.3 * t, f, period=2.0),
        (M, X, V),
    ),
    "median": (lambda np, x: np.median(x), (M,)),
    "median along": (lambda np, x: np.median(x, axis=0, keepdims=True), (M,)),
    "median of axes": (lambda np, x: np.median(x, axis=(0, 2)), (T,)),
    "nancumprod": (lambda np, x: np.nancumprod(x, axis=1), (N,)),
    "nanmedian": (lambda np, x: np.nanmedian(x, axis=1), (N,)),
    "nanquantile": (lambda np, x: np.nanquantile(x, 0.3), (N,)),
    "nanpercentile": (
        lambda np, x: np.nanpercentile(x, np.array([30.0, 60.0]), axis=0, keepdims=True),
        (N,),
    ),
    "partition": (lambda np, x: np.partition(x, 2)[2] * np.partition(x, 2).sum(), (V,)),
    "percentile": (lambda np, x: np.percentile(x, 30.0), (M,)),
    "percentiles": (lambda np, x: np.percentile(x, QS * 100.0, axis=1), (M,)),
    "quantile": (lambda np, x: np.quantile(x, QS, axis=0, keepdims=True), (M,)),
    "quantile lower": (lambda np, x: np.quantile(x, 0.35, method="lower"), (M,)),
    "quantile midpoint": (lambda np, x: np.quantile(x, QS, method="midpoint"), (M,)),
    "quantile of axes": (lambda np, x: np.quantile(x, QS, axis=(1, 0)), (T,)),
    "searchsorted": (lambda np, t, x: x * np.searchsorted(t, x), (X, M)),
    "searchsorted right": (lambda np, t: t * np.searchsorted(t, t, side="right"), (X,)),
    "sort": (lambda np, x: np.sort(x), (M,)),
    "sort of all": (lambda np, x: np.sort(x, axis=None), (M,)),
    "sort along": (lambda np, x: np.sort(x, axis=1), (T,)),
    "take_along_axis": (
        lambda np, x: np.take_along_axis(x, np.argsort(-x, axis=1)[:, :2], axis=1),
        (M,),
    ),
    "take_along_axis of all": (lambda np, x: np.take_along_axis(x, ENDS, axis=None), (M,)),
}
NUMPY_ONLY: dict[str, tuple[Code, tuple[Any, ...]]] = {
    "gradient between": (lambda np, x, t: np.gradient(x, t), (V, X)),
    "gradient of order 2": (lambda np, x: np.gradient(x, edge_order=2), (V,)),
    "gradient of order 2 between": (
        lambda np, x, t: np.gradient(x, t[:4], axis=-1, edge_order=2),
        (M, X),
    ),
    "fix": (lambda np, x: np.fix(2.5 * x) * x, (V,)),
    "repeat each": (lambda np, x: np.repeat(x, TWICE, axis=0), (M,)),
    "median of nan": (lambda np, x: np.median(x, axis=1)[1:2], (N,)),
    **{
        f"quantile by {method}": (
            lambda np, x, method=method: np.quantile(x, QS, axis=1, method=method),
            (M,),
        )
        for method in (
            *("inverted_cdf", "averaged_inverted_cdf", "closest_observation", "hazen", "weibull"),
            *("interpolated_inverted_cdf", "median_unbiased", "normal_unbiased", "nearest"),
        )
    },
    "piecewise with a parameter": (
        lambda np, x: np.piecewise(x, x < 0.0, [lambda v, a: a * v * v, lambda v, a: v / a], 3.0),
        (V,),
    ),
    "std of corrected": (lambda np, x: np.std(x, correction=1), (M,)),
    "var about a mean": (lambda np, x: np.var(x, mean=np.mean(x * x)), (M,)),
}
"""What JAX does not have."""

OF_JAX = STATISTICS | SELECTION | FLAT | PRODUCTS | CALCULUS | ORDERING | FOURIER
"""What is compared with JAX's derivatives."""

OF_DIFFERENCES = LAYOUT | JOINING | NUMPY_ONLY | SPECIAL
"""What is compared with differences of NumPy's values: JAX compiles each for long."""

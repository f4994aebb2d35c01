"""Values and gradients are PyTorch's, and where the two choose differently it is said how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from difflab import arrays
from tests.support.cases import (
    CASES,
    CHOICES,
    CLASSES,
    FLAGS,
    MATRIX_ORDERS,
    PLACES,
    ROWS,
    SHARES,
    VECTOR_ORDERS,
    Case,
    agree,
    by_name,
    choice,
    joined,
    ours,
    reciprocal,
    recurrence,
    weights_like,
)
from tests.support.rows import for_each

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'difflab[peers]'")
nn = torch.nn.functional
flags, shares = torch.tensor(FLAGS), torch.tensor(SHARES)


def running(x: Any, mean: Any, variance: Any) -> Any:
    """Running statistics by their definition, since PyTorch's own buffers have no derivative."""
    across = (0, 2, 3)
    found = torch.stack([0.7 * mean + 0.3 * x.mean(across), 0.7 * variance + 0.3 * x.var(across)])
    kept = mean.detach().clone(), variance.detach().clone()
    nn.batch_norm(x.detach(), *kept, training=True, momentum=0.3)
    torch.testing.assert_close(found.detach(), torch.stack(kept), rtol=1e-13, atol=1e-15)
    return found


def in_use(x: Any, *parameters: Any) -> Any:
    """Normalise by given statistics, by which PyTorch's own function has no derivative."""
    w, b, mean, variance = (part[:, None, None] for part in parameters)
    found = (x - mean) / torch.sqrt(variance + 1e-3) * w + b
    scale, shift, *kept = (part.detach() for part in parameters)
    known = nn.batch_norm(x.detach(), *kept, scale, shift, eps=1e-3)
    torch.testing.assert_close(found.detach(), known, rtol=1e-13, atol=1e-14)
    return found


THEIRS: dict[str, Callable[..., Any]] = {
    "sum": lambda x: x.sum(0),
    "prod": lambda x: x.prod(1),
    "mean": lambda x: x.mean(-1),
    "max": lambda x: x.amax(1),
    "min": lambda x: x.min(),
    "norm": torch.linalg.norm,
    "norm along an axis": lambda x: torch.linalg.vector_norm(x, dim=1),
    "logsumexp": lambda x: x.logsumexp(1),
    "softmax": lambda x: x.softmax(-1),
    "softmax along the first axis": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(-1),
    "cumsum": lambda x: x.cumsum(0),
    "cumprod": lambda x: x.cumprod(0),
    "linear_recurrence": lambda a, b: recurrence(torch, a, b),
    "sort": lambda x: x.sort(0).values,
    "take_along_axis": lambda x: x.take_along_dim(torch.from_numpy(PLACES), 0),
    "convolve": lambda a, v: nn.conv1d(a[None, None], v.flip(0)[None, None], padding=2)[0, 0],
    "correlate": lambda a, v: nn.conv1d(a[None, None], v[None, None])[0, 0],
    "dot": torch.dot,
    "matmul": torch.matmul,
    "matmul of stacks": torch.matmul,
    "matmul with a vector": torch.matmul,
    "outer": torch.outer,
    "einsum": lambda *x: torch.einsum("ij,jk,k->i", *x),
    "einsum of stacks": lambda *x: torch.einsum("bij,bkj->bik", *x),
    "transpose": lambda x: x.permute(2, 0, 1),
    "reshape": lambda x: x.reshape(2, 6),
    "ravel": lambda x: x.ravel(),
    "broadcast_to": lambda x: x.broadcast_to(4, 3),
    "concatenate": lambda *x: torch.concatenate(x, 1),
    "stack": lambda *x: torch.stack(x, 1),
    "index": lambda x: x[1],
    "slice": lambda x: x[1:4:2].flip(1),
    "take": lambda x: x[[2, 0, 2]],
    "pad": lambda x: nn.pad(x, (0, 3, 1, 2)),
    "squeeze": lambda x: x.squeeze(1),
    "broadcasting": lambda x, y, z: x * y + z,
    "where": lambda x, y: torch.where(flags, x * y, x - y),
    "solve": torch.linalg.solve,
    "solve for a vector": torch.linalg.solve,
    "inv": torch.linalg.inv,
    "det": torch.linalg.det,
    "cofactor": lambda x: torch.linalg.det(x) * torch.linalg.inv(x).T,
    "logdet": torch.logdet,
    "cholesky": torch.linalg.cholesky,
    "expm": torch.linalg.matrix_exp,
    "expm_frechet": lambda a, e: torch.linalg.matrix_exp(
        torch.cat([torch.cat([a, e], 1), torch.cat([0 * a, a], 1)])
    )[:3, 3:],
    "eigh": lambda x: joined(torch, torch.linalg.eigh(x)),
    "eigvalsh": torch.linalg.eigvalsh,
    "svd": lambda x: joined(torch, torch.linalg.svd(x, full_matrices=False)),
    "svd of a wide matrix": lambda x: joined(torch, torch.linalg.svd(x, full_matrices=False)),
    "svdvals": torch.linalg.svdvals,
    "qr": lambda x: joined(torch, torch.linalg.qr(x)),
    "qr of a wide matrix": lambda x: joined(torch, torch.linalg.qr(x)),
    "qr of a stack": lambda x: joined(torch, torch.linalg.qr(x)),
    "slogdet": lambda x: torch.linalg.slogdet(x)[1],
    "pinv": torch.linalg.pinv,
    "lstsq": lambda a, b: torch.linalg.lstsq(a, b, driver="gelsd")[0],
    "matrix_power": lambda x: torch.linalg.matrix_power(x, 5),
    "matrix_power of an inverse": lambda x: torch.linalg.matrix_power(x, -3),
    "multi_dot": lambda *x: torch.linalg.multi_dot(x),
    "norm_of_order": lambda x: torch.linalg.norm(x, 3, 1),
    **{
        f"norm of order {order}": lambda x, order=order: torch.linalg.norm(x, order)
        for order in MATRIX_ORDERS
    },
    **{
        f"norm of order {order} along an axis": lambda x, order=order: torch.linalg.norm(
            x, order, 0, keepdim=True
        )
        for order in VECTOR_ORDERS
    },
    "trace": torch.trace,
    "diag": torch.diag,
    "diagonal": torch.diagonal,
    "conv2d": nn.conv2d,
    "conv2d in strides": lambda x, w: nn.conv2d(x, w, stride=2, padding=1),
    "conv2d dilated and padded unevenly": lambda x, w: nn.conv2d(
        x, w, stride=(2, 1), padding=(1, 2), dilation=(2, 3)
    ),
    "conv2d in groups": lambda x, w, b: nn.conv2d(x, w, b, groups=3, dilation=2, padding=1),
    "conv1d": lambda x, w, b: nn.conv1d(x, w, b, 2, 3, 2, 2),
    "avg_pool": lambda x: nn.avg_pool2d(x, (3, 2), 2),
    "batch_norm in use": in_use,
    "running_statistics": running,
    "max_pool": lambda x: nn.max_pool2d(x, 2),
    "max_pool in strides": lambda x: nn.max_pool2d(x, 3, 2),
    "batch_norm": lambda x, w, b: nn.batch_norm(x, None, None, w, b, training=True),
    "layer_norm": lambda x, w, b: nn.layer_norm(x, (3,), w, b),
    "leaky_relu": nn.leaky_relu,
    "gelu": nn.gelu,
    **reciprocal(torch),
    "mse": nn.mse_loss,
    "cross_entropy": lambda x: nn.cross_entropy(x, torch.tensor(CLASSES)),
    "cross_entropy of shares": lambda x: nn.cross_entropy(x, shares),
}

ON_NUMBERS: dict[str, Callable[..., Any]] = {
    **by_name(
        torch,
        "acos acosh add asin asinh atan atan2 atanh ceil cos cosh digamma divide erf erfc exp exp2"
        " expm1 floor hypot log log10 log1p log2 logaddexp maximum minimum multiply negative relu"
        " round sigmoid sign sin sinh sqrt subtract tan tanh",
    ),
    "absolute": torch.abs,
    "loggamma": torch.lgamma,
    "gamma": lambda x: torch.lgamma(x).exp(),
    "power": torch.pow,
    "softplus": nn.softplus,
}


def theirs(function: Callable[..., Any], case: Case) -> tuple[np.ndarray, list[np.ndarray]]:
    leaves = [torch.tensor(value, requires_grad=True) for value in case.values]
    value = function(*leaves)
    weights = torch.tensor(weights_like(value.detach()))
    (value * weights).sum().backward()
    return value.detach().numpy(), [leaf.grad.numpy() for leaf in leaves]


@for_each("name", CASES)
def test_array_functions_agree(name: str) -> None:
    agree(ours(CASES[name]), theirs(THEIRS[name], CASES[name]))


@for_each("name", ON_NUMBERS)
def test_rows_agree(name: str) -> None:
    # PyTorch's trigamma has nine digits.
    rtol = 1e-9 if name == "digamma" else 1e-12
    agree(ours(ROWS[name]), theirs(ON_NUMBERS[name], ROWS[name]), rtol)


# At ties PyTorch shares the derivative out, in max_pool it gives it to the first. At the origin of
# hypot, and where the branch that is not taken has an infinite slope, it says nan. The logarithm it
# differentiates also where there is none; the determinant of a singular matrix it takes for flat.
OTHERWISE: dict[str, list[Any]] = {
    "maximum of equals": [0.5, 0.5],
    "minimum of equals": [0.5, 0.5],
    "max of equals": [[0.0, 0.5, 0.5]],
    "max_pool of equals": [[[[[1.0, 0.0], [0.0, 0.0]]]]],
    "hypot at 0": [np.nan, np.nan],
    "a branch not taken": [np.nan],
    "log below 0": [-1.0],
    "det of a singular matrix": [[[0.0, -0.0], [-0.0, 0.0]]],
}
CHOOSING: dict[str, Callable[..., Any]] = {
    "relu at 0": torch.relu,
    "abs at 0": torch.abs,
    "leaky_relu at 0": nn.leaky_relu,
    "clip at a bound": lambda x: torch.clip(x, 0.0, 1.0),
    "maximum of equals": torch.maximum,
    "minimum of equals": torch.minimum,
    "max of equals": torch.max,
    "max_pool of equals": lambda x: nn.max_pool2d(x, 2).sum(),
    "norm at 0": torch.linalg.norm,
    "hypot at 0": torch.hypot,
    "a branch not taken": lambda x: torch.where(x > 0, torch.sqrt(x), 0.0),
    "log below 0": torch.log,
    "det of a singular matrix": torch.linalg.det,
    "a product of zeros": torch.prod,
    "0 to the power 2": torch.pow,
}


@for_each("name", CHOICES)
def test_choices_are_pytorchs_or_named(name: str) -> None:
    leaves = [torch.tensor(value, requires_grad=True) for value in CHOICES[name][0].values]
    CHOOSING[name](*leaves).backward()
    found = choice(name)
    np.testing.assert_equal([leaf.grad.tolist() for leaf in leaves], OTHERWISE.get(name, found))
    assert name not in OTHERWISE or OTHERWISE[name] != found


def test_argmax_agrees() -> None:
    x = np.array([[1.0, 3.0, 2.0], [5.0, 4.0, 0.0]])
    assert arrays.argmax(x, 1).tolist() == torch.argmax(torch.tensor(x), 1).tolist()

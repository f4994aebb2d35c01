"""Losses of machine learning: value and gradient at the start are PyTorch's."""

import json
import re

import numpy as np
import pytest

import difflab as dl

torch = pytest.importorskip("torch")
F = torch.nn.functional


def attention_head(data, Q, K, V):
    return F.scaled_dot_product_attention(data @ Q, data @ K, data @ V).square().sum()


def contrastive_loss(data, W):
    z = data @ W
    return F.cross_entropy(z @ z.T, torch.arange(len(z)), reduction="sum")


def convolution(image, k):
    return F.relu(F.conv2d(image[None, None], k[None, None])).sum()


def focal_loss(y, x):
    """Binary cross-entropy, weighted by the square of the probability of the wrong class."""
    loss = F.binary_cross_entropy_with_logits(x, y, reduction="none")
    return torch.dot((1 - torch.exp(-loss)) ** 2, loss)


def gated_unit(W, U, h, x):
    z, r = torch.sigmoid(F.linear(x, W) + F.linear(h, U)), torch.sigmoid(F.linear(x, U))
    return torch.lerp(torch.tanh(F.linear(r * h, W) + x), h, z).square().sum()


def gelu_layer(W, x):
    return F.gelu(F.linear(x, W)).square().sum()


def layer_norm(x, g):
    return torch.dot(g, F.layer_norm(x, x.shape, eps=1e-5) ** 3)


def logistic_regression(data, y, w):
    labels = (y + 1) / 2
    loss = F.binary_cross_entropy_with_logits(data @ w, labels, reduction="sum")
    return loss + 0.01 * torch.dot(w, w)


def long_short_term_memory(W, x, c):
    """Gates that share the weights: what is forgotten is what is written."""
    z = F.linear(x, W)
    state = torch.lerp(torch.tanh(2 * z), c, torch.sigmoid(z))
    return torch.dot(torch.sigmoid(z + 1), torch.tanh(state))


def matrix_factorization(R, U, V):
    loss = torch.linalg.matrix_norm(R - U @ V.T) ** 2
    return loss + 0.1 * (torch.linalg.matrix_norm(U) ** 2 + torch.linalg.matrix_norm(V) ** 2)


def perceptron(activation):
    def loss(data, y, W, b, v):
        return F.mse_loss(activation(F.linear(data, W, b)) @ v, y)

    return loss


def policy_gradient(data, r, W):
    actions = torch.distributions.Categorical(logits=data @ W)
    return -torch.dot(r, actions.log_prob(torch.ones(len(data))))


def recurrent_cell(W, U):
    cell = torch.nn.RNNCell(1, 3, bias=False, dtype=torch.float64)
    h, weights = torch.zeros(3, dtype=torch.float64), {"weight_ih": U[:, None], "weight_hh": W}
    for x in (0.5, -0.3, 0.8, 0.1, -0.6):
        given = torch.tensor([x], dtype=torch.float64)
        h = torch.func.functional_call(cell, weights, (given, h))
    return torch.dot(h, h)


def softmax_regression(data, W):
    return F.cross_entropy(data @ W, torch.tensor([2, 0, 1, 2]))


def support_vector_smooth(data, y, w, b):
    hinge = torch.clamp(1 - y * (data @ w + b), min=0)
    return torch.dot(hinge, hinge) + 0.1 * torch.dot(w, w)


def swish(W, x):
    return F.silu(F.linear(x, W)).sum()


def variational_bound(data, m, s):
    normal = torch.distributions.Normal
    known = torch.tensor([0.3, -0.8, 1.1], dtype=torch.float64)
    prior = normal(torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64))
    distance = torch.distributions.kl_divergence(normal(m, torch.exp(s)), prior).sum()
    return (
        F.mse_loss((m + torch.exp(s) * known).expand_as(data), data, reduction="sum") / 8 + distance
    )


LOSSES = {
    "attention-head": attention_head,
    "contrastive-loss": contrastive_loss,
    "convolution": convolution,
    "focal-loss": focal_loss,
    "gated-unit": gated_unit,
    "gelu-layer": gelu_layer,
    "layer-norm": layer_norm,
    "logistic-regression-3": logistic_regression,
    "logistic-regression-8": logistic_regression,
    "lstm-cell": long_short_term_memory,
    "matrix-factorization": matrix_factorization,
    "perceptron-relu-3": perceptron(F.relu),
    "perceptron-relu-8": perceptron(F.relu),
    "perceptron-tanh-3": perceptron(torch.tanh),
    "perceptron-tanh-8": perceptron(torch.tanh),
    "policy-gradient": policy_gradient,
    "recurrent-cell": recurrent_cell,
    "softmax-regression-3": softmax_regression,
    "softmax-regression-8": softmax_regression,
    "support-vector-smooth": support_vector_smooth,
    "swish": swish,
    "variational-bound": variational_bound,
}
"""Functions of the constants of the file, in their order, and of its inputs."""
CONSTANTS = re.compile(r"^(data|image|y|r|R) = (\[.*\])$", re.MULTILINE)


def test_every_loss_has_a_second_source():
    assert [f"neural/{name}" for name in LOSSES] == [
        one.name for one in dl.problems() if one.name.startswith("neural/")
    ]


@pytest.mark.parametrize("name", LOSSES)
def test_value_and_gradient_are_those_of_pytorch(name):
    one = dl.problem(f"neural/{name}")
    constants = [json.loads(text) for _, text in CONSTANTS.findall(one.path.read_text())]
    given = [torch.tensor(constant, dtype=torch.float64) for constant in constants]
    inputs = {
        key: torch.tensor(value, dtype=torch.float64, requires_grad=True)
        for key, value in one.start.items()
    }
    loss = LOSSES[name](*given, **inputs)
    loss.backward()
    np.testing.assert_allclose(float(one.reference.value[0]), loss.item(), rtol=1e-14)
    for key, value in inputs.items():
        slopes = value.grad.numpy()
        stated = np.zeros(slopes.shape)
        for place in np.ndindex(slopes.shape):
            element = f"{key}[{','.join(map(str, place))}]" if place else key
            stated[place] = float(one.reference.elements.get((1, element), "0"))
        np.testing.assert_allclose(stated, slopes, rtol=1e-12, atol=1e-14)

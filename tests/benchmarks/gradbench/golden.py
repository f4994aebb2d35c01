"""The functions of GradBench's evals as their texts define them, one number after the other.

All but `particle` take complex numbers: a derivative is the imaginary part of the value at a point
with a tiny imaginary part, correct to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import lgamma
from typing import Any

import numpy as np

TAU = 2 * np.pi


def derivative(f: Callable[[Any], Any], x: Any) -> Any:
    """The Jacobian of `f` by complex steps, the axes of `x` last."""
    columns = []
    for place in np.ndindex(x.shape):
        moved = x.astype(complex)
        moved[place] += 1e-200j
        columns.append(np.imag(f(moved)) / 1e-200)
    return np.reshape(np.stack(columns, axis=-1), (*np.shape(columns[0]), *x.shape))


def llsq(x: Any, n: int) -> Any:
    total = 0.0
    for i in range(n):
        t = -1 + 2 * i / (n - 1)
        residual = np.sign(t) - sum(x[j] * t**j for j in range(len(x)))
        total = total + residual**2
    return total / 2


def lse(x: Any) -> Any:
    return np.log(np.sum(np.exp(x)))


def gmm(alpha: Any, mu: Any, q: Any, below: Any, x: Any, gamma: float, m: int) -> Any:
    """The sum of the logarithms of mixture and Wishart densities, from their formulas."""
    (k, d), total = mu.shape, 0.0
    weights = np.exp(alpha) / np.sum(np.exp(alpha))
    factors = [_lower(q[j], below[j], d) for j in range(k)]
    for point in x:
        density = 0.0
        for j in range(k):
            squared = np.sum((factors[j] @ (point - mu[j])) ** 2)
            scale = np.exp(np.sum(q[j])) / TAU ** (d / 2)
            density = density + weights[j] * scale * np.exp(-squared / 2)
        total = total + np.log(density)
    n = d + m + 1
    gammas = d * (d - 1) / 4 * np.log(np.pi) + sum(lgamma((n - j) / 2) for j in range(d))
    for j in range(k):
        # |V| = γ^(-2d) for V = I/γ², and the determinant of Σ⁻¹ = QᵀQ is exp(2 Σ q).
        trace = gamma**2 * np.sum(factors[j] ** 2)
        constant = d * n / 2 * np.log(2) - d * n * np.log(gamma) + gammas
        total = total + (n - d - 1) * np.sum(q[j]) - trace / 2 - constant
    return total


def _lower(logarithms: Any, below: Any, d: int) -> Any:
    rows = [[0.0] * d for _ in range(d)]
    place = 0
    for column in range(d):
        rows[column][column] = np.exp(logarithms[column])
        for row in range(column + 1, d):
            rows[row][column] = below[place]
            place += 1
    return np.array(rows)


def reprojection(parameters: Any, feature: Any) -> Any:
    """`parameters` are a camera (11), a point (3) and a weight."""
    camera, point, weight = parameters[:11], parameters[11:14], parameters[14]
    rotated = _rodrigues(camera[:3]) @ (point - camera[3:6])
    image = rotated[:2] / rotated[2]
    square = image @ image
    bent = image * (1 + camera[9] * square + camera[10] * square**2)
    return weight * (camera[6] * bent + camera[7:9] - feature)


def _rodrigues(vector: Any) -> Any:
    """exp of the cross product's matrix, by its series: no branch at angle 0."""
    x, y, z = vector
    zero = 0.0 * x
    rows = [[zero, -z, y], [z, zero, -x], [-y, x, zero]]
    matrix = np.stack([np.stack(row) for row in rows])
    total = term = np.eye(3)
    for k in range(1, 30):
        term = term @ matrix / k
        total = total + term
    return total


def hand(theta: Any, data: Any, places: Any) -> Any:
    """All residuals, point after point."""
    model = data["model"]
    bones = len(model["parents"])
    angles = [np.zeros(3)] * bones  # about x, sideways about z, about y
    number = 6
    for finger in range(5):
        for joint in range(3):
            aside = theta[number + 1] if joint == 0 else 0.0 * theta[0]
            angles[2 + 4 * finger + joint] = np.stack([theta[number], aside, 0.0 * theta[0]])
            number += 2 if joint == 0 else 1
    absolutes: list[Any] = []
    for bone, parent in enumerate(model["parents"]):
        x, z, y = angles[bone]
        turn = np.eye(4)
        for angle, axis in ((z, 2), (y, 1), (x, 0)):
            turn = turn @ _padded(_rodrigues(angle * np.eye(3)[axis]))
        own = np.array(model["base_relatives"][bone]) @ turn
        absolutes.append(own if parent == -1 else absolutes[parent] @ own)
    vertices = []
    for vertex, position in enumerate(np.array(model["base_positions"])):
        skinned = sum(
            model["weights"][vertex][bone]
            * (absolutes[bone] @ np.array(model["inverse_base_absolutes"][bone]) @ position)[:3]
            for bone in range(bones)
        )
        mirrored = skinned * np.array([-1.0 if model["is_mirrored"] else 1.0, 1.0, 1.0])
        vertices.append(_rodrigues(theta[:3]) @ mirrored + theta[3:6])
    found = []
    for number, (target, which) in enumerate(
        zip(data["points"], data["correspondences"], strict=True)
    ):
        if not len(places):
            found.append(np.array(target) - vertices[which])
            continue
        u, v = places[number]
        a, b, c = (vertices[corner] for corner in model["triangles"][which])
        found.append(np.array(target) - (u * a + v * b + (1 - u - v) * c))
    return np.concatenate(found)


def _padded(rotation: Any) -> Any:
    wide = np.concatenate([rotation, np.zeros((3, 1))], axis=1)
    return np.concatenate([wide, np.array([[0.0, 0.0, 0.0, 1.0]])])


def lstm(gates: Any, ends: Any, state: Any, sequence: Any) -> Any:
    layers, b = len(state) // 2, state.shape[1]
    hidden, memory = list(state[::2]), list(state[1::2])
    total, count = 0.0, 0
    for now, following in pairwise(sequence):
        x = now * ends[0]
        for layer in range(layers):
            weight, bias = gates[2 * layer], gates[2 * layer + 1]
            part = [slice(k * b, (k + 1) * b) for k in range(4)]
            forget = 1 / (1 + np.exp(-(x * weight[part[0]] + bias[part[0]])))
            take = 1 / (1 + np.exp(-(hidden[layer] * weight[part[1]] + bias[part[1]])))
            give = 1 / (1 + np.exp(-(x * weight[part[2]] + bias[part[2]])))
            change = np.tanh(hidden[layer] * weight[part[3]] + bias[part[3]])
            memory[layer] = memory[layer] * forget + take * change
            x = hidden[layer] = give * np.tanh(memory[layer])
        guess = x * ends[1] + ends[2]
        total = total + np.sum(following * (guess - np.log(np.sum(np.exp(guess)) + 2)))
        count += b
    return -total / count


def ode(x: Any, steps: int) -> Any:
    def slope(y: Any) -> Any:
        return np.stack([x[0], *[x[i] * y[i - 1] for i in range(1, len(x))]])

    y, h = np.zeros(len(x)), 2.0 / steps
    for _ in range(steps):
        k1 = slope(y)
        k2 = slope(y + h * k1 / 2)
        k3 = slope(y + h * k2 / 2)
        k4 = slope(y + h * k3)
        y = y + h * (k1 + 2 * k2 + 2 * k3 + k4) / 6
    return y


def particle(w: float) -> float:
    """The square of where the path crosses the axis, with the force written out by hand."""
    x, y, vx, vy = 0.0, 8.0, 0.75, 0.0
    while True:
        ax = ay = 0.0
        for cx, cy in ((10.0, 10.0 - w), (10.0, 0.0)):
            distance = ((x - cx) ** 2 + (y - cy) ** 2) ** 0.5
            ax, ay = ax + (x - cx) / distance**3, ay + (y - cy) / distance**3
        x, y = x + 0.1 * vx, y + 0.1 * vy
        if y <= 0:
            return float((x - y / vy * vx) ** 2)
        vx, vy = vx + 0.1 * ax, vy + 0.1 * ay

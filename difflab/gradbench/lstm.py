"""lstm: the loss of a small recurrent network that predicts a text's next character.

A loop over the characters; its gradient is a second loop, from the last character to the first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import difflab as dl
from difflab.gradbench.repeats import FunctionsByName, Prepared, compiled

__all__ = ["FUNCTIONS", "loss"]


def loss(gates: Any, ends: Any, state: Any, sequence: Any) -> Any:
    """Return the mean negative log likelihood of a sequence.

    Parameters
    ----------
    gates : array (2·l, 4·b)
        For each layer a row of weights and a row of biases: of the forget, the input and the
        output gate and of the change, side by side.
    ends : array (3, b)
        The factor of the input, the factor and the bias of the output.
    state : array (2·l, b)
        For each layer its initial output and its initial memory.
    sequence : array (c, b)
        The characters, a bit in each column.
    """
    layers, b = len(state) // 2, state.shape[1]
    parameters = [np.reshape(gates[2 * i : 2 * i + 2], (2, 4, b)) for i in range(layers)]

    def step(carry: Any, characters: Any) -> tuple[Any, None]:
        (total, kept), (x, following) = carry, characters
        after = []
        x = x * ends[0]
        for (weights, biases), (hidden, memory) in zip(parameters, kept, strict=True):
            x, memory = _cell(weights, biases, hidden, memory, x)
            after.append((x, memory))
        guess = x * ends[1] + ends[2]
        # The 2 is in the eval's text, which GradBench has from ADBench.
        log_likelihood = guess - np.log(2.0 + np.sum(np.exp(guess)))
        return (total + np.sum(following * log_likelihood), after), None

    first = 0.0, [(state[2 * i], state[2 * i + 1]) for i in range(layers)]
    (total, _), _ = dl.scan(step, first, (sequence[:-1], sequence[1:]))
    return -total / ((len(sequence) - 1) * b)


def _cell(weights: Any, biases: Any, hidden: Any, memory: Any, x: Any) -> tuple[Any, Any]:
    """Return a layer's output and memory."""
    forget = _sigmoid(x * weights[0] + biases[0])
    take = _sigmoid(hidden * weights[1] + biases[1])
    give = _sigmoid(x * weights[2] + biases[2])
    change = np.tanh(hidden * weights[3] + biases[3])
    memory = memory * forget + take * change
    return give * np.tanh(memory), memory


def _sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


def _arguments(question: Any) -> list[Any]:
    names = ("main_params", "extra_params", "state", "sequence")
    return [np.array(question[name], dtype=float) for name in names]


def _objective(question: Any) -> Prepared:
    return compiled(loss, *_arguments(question), output=float)


def _jacobian(question: Any) -> Prepared:
    def flat(gradient: Any) -> Any:
        return np.concatenate([part.ravel() for part in gradient]).tolist()

    return compiled(dl.grad(loss, (0, 1)), *_arguments(question), output=flat)


FUNCTIONS: FunctionsByName = {"objective": _objective, "jacobian": _jacobian}

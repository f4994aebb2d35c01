"""LSTM: the loss of a small recurrent network that predicts a text's next character."""

from __future__ import annotations

from typing import Any

from benchmarks.objectives.maths import Maths

__all__ = ["loss"]


def loss(maths: Maths, gates: Any, ends: Any, state: Any, sequence: Any) -> Any:
    """Return the mean negative log likelihood of a sequence.

    Parameters
    ----------
    maths : Maths
        The array module.
    gates : array (l, 2, 4, b)
        Weights and biases of each layer's forget, input, output and change gates.
    ends : array (3, b)
        The factor of the input, and the factor and the bias of the output.
    state : array (l, 2, b)
        The initial output and memory of each layer.
    sequence : array (c, b)
        The characters.
    """
    xp = maths.xp
    layers = range(len(gates))

    def step(carry: Any, now: Any, following: Any) -> Any:
        total, kept = carry
        x, after = now * ends[0], []
        for layer in layers:
            hidden, memory = kept[layer]
            x, memory = _cell(maths, gates[layer], hidden, memory, x)
            after.append((x, memory))
        guess = x * ends[1] + ends[2]
        # ADBench writes log(sum(exp(guess), 2)), where 2 is the start value of Python's sum.
        loss = guess - xp.log(2.0 + xp.sum(xp.exp(guess)))
        return total + xp.sum(following * loss), after

    first = 0.0 * state[0, 0, 0], [(state[layer, 0], state[layer, 1]) for layer in layers]
    total, _ = maths.loop(step, first, sequence[:-1], sequence[1:])
    count, size = sequence.shape
    return -total / ((count - 1) * size)


def _cell(maths: Maths, gates: Any, hidden: Any, memory: Any, x: Any) -> tuple[Any, Any]:
    """Return a layer's output and memory."""
    weight, bias = gates[0], gates[1]
    forget = maths.sigmoid(x * weight[0] + bias[0])
    take = maths.sigmoid(hidden * weight[1] + bias[1])
    give = maths.sigmoid(x * weight[2] + bias[2])
    change = maths.xp.tanh(hidden * weight[3] + bias[3])
    memory = memory * forget + take * change
    return give * maths.xp.tanh(memory), memory

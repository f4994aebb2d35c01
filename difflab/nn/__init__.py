"""Layers, losses and their parameters, with PyTorch's names, defaults and formulas.

Code written for `torch.nn` runs with its imports changed:

    import difflab as dl
    from difflab import nn, optim
    from difflab.nn import functional as F

A `Module` computes on tensors, whose `backward` gives the gradients of its parameters, and by
`functional_call` on traced values with the parameters as an argument, for `dl.grad` and `dl.jit`.
Numbers are float64. The first parameters and the masks of `Dropout` are drawn by keys:
`manual_seed` sets the first one.

Examples
--------
>>> import numpy as np
>>> model = Sequential(Linear(2, 3), ReLU(), Linear(3, 1))
>>> [name for name, _ in model.named_parameters()]
['0.weight', '0.bias', '2.weight', '2.bias']
>>> model(np.ones((5, 2))).shape
(5, 1)
"""

from difflab.nn import functional, layers
from difflab.nn.layers import *
from difflab.nn.module import Module, Parameter, functional_call, load, manual_seed, save

__all__ = ["Module", "Parameter", "functional", "functional_call", "load", "manual_seed", "save"]
__all__ += layers.__all__

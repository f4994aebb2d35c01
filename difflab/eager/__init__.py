"""Define-by-run: tensors that record what is done with them, and go backward through it.

The third way to the same rules, beside parsing and tracing: Python's own control flow decides
what is computed, and the tape holds what was. May import `autodiff`, `graph`, `primitives`,
`core`, `errors`.
"""

from difflab.eager.account import memory
from difflab.eager.anomaly import Watch, detect_anomaly
from difflab.eager.chain import checkpoint_chain
from difflab.eager.checkpointing import checkpoint
from difflab.eager.making import tensor
from difflab.eager.mode import enable_grad, no_grad
from difflab.eager.tensors import Tensor

__all__ = [
    "Tensor",
    "Watch",
    "checkpoint",
    "checkpoint_chain",
    "detect_anomaly",
    "enable_grad",
    "memory",
    "no_grad",
    "tensor",
]

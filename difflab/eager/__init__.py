"""Define-by-run: tensors that record what is done with them, and go backward through it.

The third way to the same rules, beside parsing and tracing: Python's own control flow decides
what is computed, and the tape holds what was.
"""

from difflab.eager.anomaly import Watch, detect_anomaly
from difflab.eager.checkpoints.chain import checkpoint_chain
from difflab.eager.checkpoints.checkpoint import checkpoint
from difflab.eager.memory_use import memory
from difflab.eager.recording.mode import enable_grad, no_grad
from difflab.eager.tensors.making import tensor
from difflab.eager.tensors.tensor import Tensor

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

"""Define-by-run: tensors that record the operations on them, and backpropagate through them.

The third front end to the same rules, beside parsing and tracing: Python's own control flow
decides what is computed, and the tape records it.
"""

from difflab.eager.anomaly import Watch, detect_anomaly
from difflab.eager.chains import checkpoint_chain
from difflab.eager.checkpoints import checkpoint, checkpoint_with
from difflab.eager.gradients import grad
from difflab.eager.memory_use import memory
from difflab.eager.recording.tape import enable_grad, inference_mode, no_grad
from difflab.eager.tensors.tensor import Tensor, tensor

__all__ = [
    "Tensor",
    "Watch",
    "checkpoint",
    "checkpoint_chain",
    "checkpoint_with",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "inference_mode",
    "memory",
    "no_grad",
    "tensor",
]

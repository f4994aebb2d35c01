"""Programs in FPCore, the format of FPBench."""

from difflab.interop.formats.fpcore.reader import from_fpcore

__all__ = ["from_fpcore"]

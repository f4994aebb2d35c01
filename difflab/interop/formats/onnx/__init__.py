"""Models in ONNX's format."""

from difflab.interop.formats.onnx.model import from_onnx

__all__ = ["from_onnx"]

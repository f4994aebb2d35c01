"""Models in ONNX's format: read, and written."""

from difflab.interop.formats.onnx.model import from_onnx
from difflab.interop.formats.onnx.writer import to_onnx

__all__ = ["from_onnx", "to_onnx"]

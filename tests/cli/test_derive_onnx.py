"""``derive --format onnx``: a file that ONNX's evaluator runs."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnx.reference")


def test_a_model_of_value_and_gradient(difflab, tmp_path):
    path = tmp_path / "gradient.onnx"
    found = difflab("derive", "x^2*y", "--value", "--format", "onnx", "-o", str(path))
    assert (found.code, found.out) == (0, "")
    onnx.checker.check_model(onnx.load(path), full_check=True)
    evaluator = onnx.reference.ReferenceEvaluator(onnx.load(path))
    value, slope = evaluator.run(None, {"x": np.array(3.0), "y": np.array(2.0)})
    assert float(value) == 18.0
    assert slope.tolist() == [12.0, 9.0]


def test_a_binary_file_needs_a_name(difflab):
    found = difflab("derive", "x^2", "--format", "onnx")
    assert found.code == 2
    assert "add -o FILE.onnx" in found.err


def test_what_onnx_lacks_is_named_and_nothing_is_written(difflab, tmp_path):
    found = difflab("derive", "gamma(x)", "--format", "onnx", "-o", "model.onnx")
    assert found.code == 2
    assert "ONNX has no form of 'gamma'" in found.err
    assert not (tmp_path / "model.onnx").exists()

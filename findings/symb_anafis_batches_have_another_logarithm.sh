#!/usr/bin/env bash
# SymbAnaFis 0.8.1: a compiled evaluator gives ln of one point correctly rounded, and of a batch with an error of
# some hundred ULP. Sine and cosine are the same both ways.
#
# Output seen:
#   symb-anafis 0.8.1
#   ln(x): batch and points differ by 985 ULP
#   sin(x): batch and points differ by 0 ULP
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check symb-anafis==0.8.1 numpy==2.3.5
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import symb_anafis as sa

print("symb-anafis", sa.__version__)
x, points = sa.symb("x").to_expr(), np.linspace(0.6, 1.9, 8)
apart = {}
for function in (x.ln(), x.sin()):
    evaluator = sa.CompiledEvaluator(function, ["x"])
    one = np.array([evaluator.evaluate([point]) for point in points])
    apart[str(function)] = np.max(np.abs(evaluator.eval_batch([points]) - one) / np.spacing(np.abs(one)))
    print(f"{function}: batch and points differ by {apart[str(function)]:.0f} ULP")
    exact = np.log(points) if "ln" in str(function) else np.sin(points)
    assert np.max(np.abs(one - exact) / np.spacing(np.abs(exact))) <= 1
assert apart["ln(x)"] > 100
assert apart["sin(x)"] <= 1
PYTHON

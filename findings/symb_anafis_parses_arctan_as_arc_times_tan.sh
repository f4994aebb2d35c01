#!/usr/bin/env bash
# SymbAnaFis 0.8.1: a function that its parser does not know becomes a product, without an error: arctan(x) is the
# symbol arc times tan(x), relu(x) is relu*x, whose derivative is the symbol relu.
#
# Output seen:
#   symb-anafis 0.8.1
#   arctan(x): read as arc*tan(x), derivative arc*sec(x)^2
#   relu(x): read as relu*x, derivative relu
#   atan(x): read as atan(x), derivative 1/(1 + x^2)
#
# Needs Python 3.11 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check symb-anafis==0.8.1
"$folder/venv/bin/python" - <<'PYTHON'
import symb_anafis as sa

print("symb-anafis", sa.__version__)
found = {text: (str(sa.parse(text)), sa.diff(text, "x")) for text in ("arctan(x)", "relu(x)", "atan(x)")}
for text, (read, slope) in found.items():
    print(f"{text}: read as {read}, derivative {slope}")
assert found["arctan(x)"] == ("arc*tan(x)", "arc*sec(x)^2")
assert found["relu(x)"] == ("relu*x", "relu")
assert found["atan(x)"][0] == "atan(x)"
PYTHON

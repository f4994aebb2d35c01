#!/usr/bin/env bash
# SymForce 0.12.0 brings files of its own under the name of the package symengine. Installed into an
# environment that has symengine 0.15.0, it overwrites them: afterwards `pip list` still says 0.15.0
# and `pip check` finds nothing broken, but the module is SymForce's copy of 0.11.0, built without
# LLVM.
#
# Output seen:
#   before: module 0.15.0, LLVM True
#   after: package 0.15.0, module 0.11.0, LLVM False
#   pip check: No broken requirements found.
#
# Needs Python 3.11 and the package index. Fails if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
pip=("$folder/venv/bin/pip" --disable-pip-version-check)
"${pip[@]}" install -q symengine==0.15.0
module() {
    "$folder/venv/bin/python" -c \
        'import symengine as s; print(f"module {s.__version__}, LLVM {s.have_llvm}")'
}
before=$(module)
echo "before: $before"
"${pip[@]}" install -q symforce==0.12.0
package=$("${pip[@]}" list --format=freeze | sed -n 's/^symengine==//p')
after="package $package, $(module)"
echo "after: $after"
checked=$("${pip[@]}" check)
echo "pip check: $checked"
[[ $before == "module 0.15.0, LLVM True" ]]
[[ $after == "package 0.15.0, module 0.11.0, LLVM False" ]]
[[ $checked == "No broken requirements found." ]]

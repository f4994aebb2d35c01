#!/usr/bin/env bash
# SciPy 1.18.1: kstest(x, "norm", (3.0, 2.0)) raises a TypeError, although args are documented as the
# parameters of the named distribution: the ufunc ndtr is called, which takes no location and scale.
# Without args, and for "expon" with args, it works.
#
# Output seen:
#   scipy 1.18.1
#   norm without args: p = 0.072
#   norm with args: TypeError: ndtr() takes from 1 to 2 positional arguments but 3 were given
#   expon with args: p = 0.072
#   the method of a frozen norm: p = 0.072
#
# Needs Python 3.12 or later and the package index. Fails if the behaviour has changed.
set -euo pipefail
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check scipy==1.18.1 numpy==2.5.0
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import scipy
from scipy import stats

print("scipy", scipy.__version__)
z = np.random.default_rng(1).normal(size=200)
x = 3.0 + 2.0 * z
times = 3.0 + 2.0 * stats.expon.ppf(stats.norm.cdf(z))


def shown(name, *arguments):
    try:
        print(f"{name}: p = {stats.kstest(*arguments).pvalue:.3f}")
    except TypeError as error:
        print(f"{name}: TypeError: {error}")
        return True
    return False


assert not shown("norm without args", z, "norm")
assert shown("norm with args", x, "norm", (3.0, 2.0))
assert not shown("expon with args", times, "expon", (3.0, 2.0))
assert not shown("the method of a frozen norm", x, stats.norm(3.0, 2.0).cdf)
PYTHON

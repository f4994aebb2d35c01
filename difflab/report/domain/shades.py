"""The colour of a point: the verdict decides the hue, the error the shade."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from difflab.lab.domain.judging import SILENT, VERDICTS, MethodJudged
from difflab.lab.domain.record import UNANSWERED
from difflab.referee.verdict import Verdict

HUES = {
    "agree": "#0072B2",
    "convention": "#009E73",
    "declared": "#CC79A7",
    "inconclusive": "#E69F00",
    "disagree": "#B2182B",
    UNANSWERED: "#B8BABD",
}
"""Five of Okabe and Ito's colours, the red darker, which the colour-blind tell apart; and grey."""

DARKEST = 16
"""The decimal digits that are lost where a shade is the darkest: all of float64."""
_PALEST, _WRONG = 0.18, 0.7


def depth(ulps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the shade of errors in ULP, from 0 for a rounding to 1 for all digits.

    Examples
    --------
    >>> depth(np.array([0.5, 1e8, np.nan, -np.inf])).tolist()
    [0.0, 0.5, 1.0, 0.0]
    """
    sizes = np.where(np.isnan(ulps), np.inf, ulps)
    with np.errstate(divide="ignore"):
        digits = np.log10(np.maximum(sizes, 1.0))
    found: NDArray[np.float64] = np.clip(digits / DARKEST, 0.0, 1.0)
    return found


def colours(judged: MethodJudged) -> NDArray[np.float64]:
    """Return the colour of every point, ``(N, 3)``."""
    from matplotlib.colors import to_rgb

    names = [*map(str, VERDICTS), UNANSWERED]
    hues = np.array([to_rgb(HUES[name]) for name in names])[judged.verdicts]
    shade = _PALEST + (1 - _PALEST) * depth(judged.ulps)
    # A wrong answer is never pale, nor is a point without one.
    wrong = judged.verdicts == VERDICTS.index(Verdict.DISAGREE)
    shade = np.where(wrong, np.maximum(shade, _WRONG), shade)
    shade = np.where(judged.verdicts == SILENT, 1.0, shade)[:, None]
    found: NDArray[np.float64] = hues * shade + (1 - shade)
    return found

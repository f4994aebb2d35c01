"""The sparsity pattern of a derivative, as text and as a picture.

Both are bounded in size: a pattern too large to be shown by entry is shown by block.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.table import facts
from difflab.core.wording import counted, percent
from difflab.report.canvas import FAINT, INK, captions, saved, style
from difflab.report.terminal import clean, draw, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from difflab.autodiff.sparsity import SparseDerivative


_ENTRIES = 44  # most rows and columns of a pattern written by entry
_LINES, _WIDTH = 32, 64  # blocks of larger matrices, in characters twice as high as wide
_FEWEST = 4  # lines and characters of a matrix that is much longer in the other direction
_PIXELS = 240
_LONGEST, _THINNEST = (8.3, 5.2), 0.6  # height and width of the picture of a matrix in inches
# Okabe and Ito's palette without its yellow, which is too light for small marks.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#777777")


def text(derivative: SparseDerivative, title: str, width: int = 88) -> str:
    """Return the pattern and the sweeps it saves, as text at most `width` columns wide.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x: [4]; x[1:] * x[:-1]")
    >>> print(text(dl.sparse_jacobian(f), "Jacobian"), end="")
    Jacobian
    size      3 rows, 4 columns
    nonzeros  6 of 12 (50 %)
    sweeps    2 forward instead of 4, by coloring columns
    <BLANKLINE>
    # # . .
    . # # .
    . . # #
    """
    m, n = derivative.pattern.shape
    pairs = _facts(derivative)
    if m <= _ENTRIES and n <= _ENTRIES and 2 * n <= width + 1:
        filled = _blocks(derivative.pattern, m, n)
        rows = [" ".join("#" if share else "." for share in row) for row in filled.tolist()]
    else:
        filled = _blocks(derivative.pattern, *_characters(m, n, min(_WIDTH, width)))
        rows = ["".join(map(_mark, row)) for row in filled.tolist()]
        pairs.append(("map", ". no entry, o some, # all of a block"))
    return draw([[shorten(clean(title), width - 2), facts(pairs)], "\n".join(rows)], width=width)


def _characters(m: int, n: int, width: int) -> tuple[int, int]:
    """Return the lines and the characters of a matrix, in which a square is a square.

    Examples
    --------
    >>> _characters(50, 50, 64), _characters(1000, 500, 64), _characters(10**6, 3, 64)
    ((25, 50), (32, 32), (32, 3))
    """
    scale = max(n / width, m / (2 * _LINES), 1)  # entries per character
    lines, characters = math.ceil(m / (2 * scale)), math.ceil(n / scale)
    return max(lines, min(m, _FEWEST)), max(characters, min(n, _FEWEST))


def _mark(share: float) -> str:
    return "#" if share == 1 else "o" if share else "."


def _facts(derivative: SparseDerivative) -> list[tuple[str, str]]:
    """Return the size, the nonzeros and the sweeps of a pattern, each with its name."""
    m, n = derivative.pattern.shape
    entries, count = derivative.pattern.nnz, sum(derivative.sweeps)
    share = entries / max(m * n, 1)
    colored, most = {
        "forward": ("columns", n),
        "reverse": ("rows", m),
        "bidirectional": ("rows and columns at once", min(m, n)),
    }[derivative.mode]
    saved_by = f" instead of {most:,}, by coloring {colored}" if count < most else ""
    sweeps = f"{count:,} {derivative.mode}"
    if derivative.mode == "bidirectional":
        sweeps = "{:,} forward and {:,} reverse".format(*derivative.sweeps)
    return [
        ("size", f"{counted(m, 'row')}, {counted(n, 'column')}"),
        ("nonzeros", f"{entries:,} of {m * n:,} ({percent(share)})"),
        ("sweeps", f"{sweeps}{saved_by}"),
    ]


def _blocks(pattern: Any, height: int, width: int) -> NDArray[np.float64]:
    """Return the share of structural nonzeros in each block of a matrix."""
    m, n = pattern.shape
    rows, columns = pattern.nonzero()
    blocks = (rows.astype(np.int64) * height // m) * width + columns.astype(np.int64) * width // n
    counts = np.bincount(blocks, minlength=height * width).reshape(height, width)
    sizes = [
        np.bincount(np.arange(size) * parts // size, minlength=parts)
        for size, parts in ((m, height), (n, width))
    ]
    shares: NDArray[np.float64] = counts / np.multiply.outer(*sizes)
    return shares


def picture(derivative: SparseDerivative, title: str, kind: str) -> bytes:
    """Return the pattern as the bytes of a picture file.

    Raises
    ------
    InputError
        The format is not "svg", "png" or "pdf".
    """
    with style():
        return saved(figure(derivative, title), kind)


def figure(derivative: SparseDerivative, title: str) -> Figure:
    """Return the pattern as a matplotlib figure, with a color for each direction."""
    from matplotlib.figure import Figure

    m, n = derivative.pattern.shape
    inch = min(_LONGEST[0] / max(m, 1), _LONGEST[1] / max(n, 1))  # of an entry
    down, across = (max(size * inch, _THINNEST) for size in (m, n))
    wide, high = 5.9, down + 1.9
    canvas = Figure(figsize=(wide, high))
    left = 0.6 / wide
    _draw(canvas.add_axes((left, 0.2 / high, across / wide, down / high)), derivative)
    key = (
        "a color for each sweep"
        if max(m, n) <= _PIXELS
        else "darker for a larger share of nonzeros in a block"
    )
    lines = [(0.12, shorten(clean(title), 54), 11.0, INK, "bold")]
    for name, value in (*_facts(derivative), ("drawn", key)):
        lines.append((0.07, f"{name}: {value}", 9.0, FAINT, "normal"))
    captions(canvas, lines, left)
    return canvas


def _draw(axes: Axes, derivative: SparseDerivative) -> None:
    """Draw entries in the color of their direction, or blocks shaded by their share of nonzeros."""
    from matplotlib.colors import to_rgb
    from matplotlib.ticker import MaxNLocator

    m, n = derivative.pattern.shape
    height, width = min(m, _PIXELS), min(n, _PIXELS)
    pixels = np.ones((height, width, 3))
    if (height, width) == (m, n):
        palette = np.array([to_rgb(color) for color in _COLORS])
        rows, columns = derivative.pattern.nonzero()
        pixels[rows, columns] = palette[derivative.directions % len(palette)]
    else:
        ink = np.array(to_rgb(_COLORS[0]))
        shares = _blocks(derivative.pattern, height, width)[..., None]
        pixels = np.where(shares > 0, 1 - (0.35 + 0.65 * shares) * (1 - ink), 1.0)
    edges = (-0.5, n - 0.5, m - 0.5, -0.5)
    axes.imshow(pixels, interpolation="nearest", aspect="auto", extent=edges)
    axes.xaxis.tick_top()
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(6, integer=True))
    if max(m, n) <= _ENTRIES:
        axes.hlines(np.arange(m) - 0.5, *axes.get_xlim(), color="white", lw=0.8)
        axes.vlines(np.arange(n) - 0.5, *axes.get_ylim(), color="white", lw=0.8)
    for spine in axes.spines.values():
        spine.set_visible(True)

"""Write value and derivative at the start into the files of problems.

The referee computes them: from ball arithmetic over FLINT's power series where it encloses the
derivative, else from high-precision differences of mpmath values; no derivative rule of difflab's
is involved. Run it for files, or for everything whose reference is missing::

    python -m tests.lab.problems.references
    python -m tests.lab.problems.references difflab/lab/problems/sets/mgh/*.txt
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from difflab.errors import InputError
from difflab.lab.problems.file import DIGITS, Problem, element_names, read_header
from difflab.lab.problems.library import SETS

__all__ = ["referenced", "write"]

TIMEOUT = 600.0
"""Seconds for one problem."""


def referenced(problem: Problem) -> str:
    """Return the file of a problem with its size, and value and derivative behind the program.

    Raises
    ------
    InputError
        The referee did not reach 40 digits.
    """
    from difflab.diagnose.point_check import checked_point, packed
    from difflab.referee.referee import refer

    function = problem.function
    point = packed(function, checked_point(function, problem.start))
    found = refer(function, point.tolist(), timeout=TIMEOUT)
    if found.contradiction:
        raise InputError(f"problem:{problem.name}: {found.contradiction}")
    header = {**problem.header, "size": f"{function.n} -> {function.m}"}
    lines = [f"# {key}: {value}" for key, value in header.items()]
    lines += problem.text.splitlines()
    lines.append(f"# value: {', '.join(_decimal(value) for value in found.value)}")
    return "\n".join([*lines, "# derivative:", *_elements(problem, found)]) + "\n"


def _elements(problem: Problem, found: Any) -> Iterator[str]:
    """Yield the lines of the elements that are not zero."""
    for row in range(problem.function.m):
        for column, name in enumerate(element_names(problem.function)):
            place = row, column
            status = str(found.regularity[place])
            if status == "unresolved":
                raise InputError(f"problem:{problem.name}: the derivative by {name} is unresolved")
            left, right = found.left[place], found.right[place]
            if status != "smooth":
                sides = f" [{_decimal(left)}, {_decimal(right)}]" if status == "kink" else ""
                yield f"#   {row + 1} {name} = {status}{sides}"
            elif found.exact[place] != 0:
                _check_digits(problem, found, place)
                yield f"#   {row + 1} {name} = {_decimal(found.exact[place])}"


def _check_digits(problem: Problem, found: Any, place: tuple[int, int]) -> None:
    size = float(abs(found.exact[place]))
    if not found.bounds[place] <= 0.5 * 10.0**-DIGITS * size and size > math.ldexp(1, -900):
        raise InputError(
            f"problem:{problem.name}: the error bound of element {place} is "
            f"{found.bounds[place]:.2g}, the element {size:.2g}"
        )


def _decimal(value: Any) -> str:
    from mpmath import mp

    text: str = mp.nstr(value, DIGITS, strip_zeros=True)
    return text.removesuffix(".0")


def write(paths: Sequence[Path]) -> None:
    """Write the references of the files at `paths`."""
    for path in paths:
        name = f"{path.parent.name}/{path.stem}"
        content = referenced(Problem(name, path, read_header(path)))
        path.write_text(content, encoding="utf-8")


def main() -> None:
    """Write the references of the files that are named, or of all that lack one."""
    named = [Path(name) for name in sys.argv[1:]]
    every = sorted(SETS.glob("*/*.txt"))
    lacking = (path for path in every if "# derivative:" not in path.read_text(encoding="utf-8"))
    for path in named or lacking:
        try:
            write([path])
        except InputError as error:
            sys.stderr.write(f"{error}\n")
        except Exception as error:
            raise InputError(f"{path}: {error}") from error


if __name__ == "__main__":
    main()

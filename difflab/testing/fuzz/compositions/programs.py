"""Random programs under random compositions of transforms."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from difflab.testing.fuzz.compositions.framework import Step
from difflab.testing.fuzz.programs import COMMON, Program, programs

_MANY = 64  # more transforms than a package has
_DTYPES = ("float64", "float64", "float64", "float32")


@dataclass(frozen=True)
class Composed(Program):
    """A program, a point and a composition.

    Attributes
    ----------
    steps : tuple of Step
        The transforms, the innermost first; each package has its own by their positions.
    dtype : str
        In which everything is computed.
    """

    steps: tuple[Step, ...] = (Step(True, 0),)
    dtype: str = "float64"

    @property
    def order(self) -> int:
        """How often it is differentiated."""
        return sum(step.derives for step in self.steps)


def _steps(derives: bool, most: int) -> st.SearchStrategy[list[Step]]:
    one = st.builds(Step, st.just(derives), st.integers(0, _MANY - 1))
    return st.lists(one, min_size=int(derives), max_size=most)


@st.composite
def compositions(draw: st.DrawFn) -> Composed:
    """Return a program that is differentiated one to three times, with other transforms between."""
    program = draw(programs(COMMON))
    steps: list[Step] = []
    for _ in range(draw(st.sampled_from((1, 2, 2, 3)))):
        steps += draw(_steps(False, 2))
        steps += draw(_steps(True, 1))
    steps += draw(_steps(False, 1))
    return Composed(program.text, program.point, tuple(steps), draw(st.sampled_from(_DTYPES)))

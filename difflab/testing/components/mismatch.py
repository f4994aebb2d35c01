"""The exceptions of failed checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from difflab.errors import DifflabError

if TYPE_CHECKING:
    from difflab.testing.components.message import Component

__all__ = ["GradientMismatch", "GradientUnjudged", "ImpureFunction"]


class GradientMismatch(DifflabError, AssertionError):
    """The gradient disagrees with numeric differentiation; the message lists the components.

    Attributes
    ----------
    components : tuple of Component
        The wrong components: both values and the error bar of the numeric value.
    unjudged : tuple of Component
        The components that could not be judged.
    """

    __module__ = "difflab.testing.gradient"  # the name in tracebacks, beside `check_gradient`

    def __init__(
        self,
        message: str,
        components: tuple[Component, ...] = (),
        unjudged: tuple[Component, ...] = (),
    ) -> None:
        super().__init__(message)
        self.components = components
        self.unjudged = unjudged


class GradientUnjudged(GradientMismatch):
    """No component is wrong, but some could not be judged; the message lists them."""

    __module__ = "difflab.testing.gradient"


class ImpureFunction(GradientMismatch):
    """The function changes its argument, or two calls at one point differ; the message says why.

    Its derivative cannot be judged.
    """

    __module__ = "difflab.testing.gradient"

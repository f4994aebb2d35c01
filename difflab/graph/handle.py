"""`Handle`: in-place changes of traced values, and their conversions to Python scalars."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from difflab import arrays
from difflab.arrays.idioms import Idioms
from difflab.arrays.in_place import INSTEAD
from difflab.arrays.scipy_calls import not_by_comparisons, not_through_scipy
from difflab.core.place import at_users_line, user_location
from difflab.errors import IndexingError, ShapeError, TraceError
from difflab.graph.builder import OPEN_TRACES, Builder

BRANCH_INSTEAD = (
    "write dl.cond(condition, f, g, x) instead of `if`, or numpy.where(condition, a, b) for each"
    " element, and (a < x) & (x < b) instead of `and` and a < x < b; or run the code on"
    " difflab.tensor, or under grad or jvp alone, which can branch"
)
LOOP_INSTEAD = (
    "write dl.while_loop(condition, step, x) instead of `while`, or dl.scan and dl.fori_loop for a"
    " known number of turns; or run the code on difflab.tensor, or under grad or jvp alone, which"
    " can branch"
)
NO_NUMBER = "a traced value has no number yet"
NO_INTEGER = (
    "make it a constant of the trace: close over it, or name its position in"
    " static_argnums of dl.jit; dl.while_loop takes a number of turns that is computed,"
    " dl.scan the elements of an array"
)


class AssignedError(TraceError):
    """A traced value was converted to a number, as NumPy does on assignment."""

    def of_an_array(self) -> TraceError:
        """Return the error for ``z[i] = value`` with a NumPy array ``z``."""
        where = self.message.removeprefix(NO_NUMBER)
        message = f"a traced value cannot be assigned to a part of a NumPy array{where}"
        return TraceError(message, text=self.text, span=self.span, hint=INSTEAD)


class Handle(Idioms):
    """In-place changes of a traced value, and its conversions to Python scalars.

    A traced value can be converted if code is traced at one point, as `grad` does.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        builder: Builder
        id: int
        epoch: int

        def _take(self, new: Any) -> None: ...

    # Changes in place: the protocol of `difflab.arrays.in_place`.

    def is_number(self) -> bool:
        """Whether it is a number, which Python rebinds where it changes an array."""
        return not self.shape and self._view is None

    def __difflab_renamed__(self, new: Any) -> Any:
        """Return the value of a name after an augmented assignment to a scalar."""
        return new

    def __difflab_writable__(self, what: str) -> None:
        """Raise `TraceError` unless the handle was made inside of the innermost trace."""
        traces, builder = OPEN_TRACES.builders, self.builder
        if not hasattr(builder, "is_open") or (traces and traces[-1] is builder):
            return
        outside = builder in traces
        if outside and self.epoch == builder.epoch:  # made inside of the function
            return
        raise at_users_line(
            TraceError,
            f"{what} would change a traced value from outside of the function that is traced"
            if outside
            else f"{what} would change a value of a trace that has ended",
            "pass it to the function as an argument and return the new value, or change a copy()",
        )

    def __difflab_store__(self, new: Any, what: str) -> None:
        """Take the value of another handle, whose trace may be inside of this one's."""
        if new.builder is not self.builder:
            inner = OPEN_TRACES.builders[-1:] == [new.builder]
            if inner and self.epoch == self.builder.epoch:
                self._take(new)
                return
            raise at_users_line(
                TraceError,
                f"{what} would store a value of one trace in another",
                "return traced values from the function instead of storing them elsewhere",
            )
        self._take(new)

    # Numbers.

    def __difflab_value__(self) -> Any:
        return self.builder.known_value(self.id)

    def _whole(self, what: str, hint: str) -> int:
        """Return the number toward zero; raise `TraceError` if it is not known."""
        value = self.builder.known_value(self.id)
        if value is None:
            raise at_users_line(TraceError, what, hint)
        if self.size != 1:
            raise at_users_line(
                ShapeError, f"a traced value of shape {self.shape} is not a single number"
            )
        number = np.asarray(value).item()
        if not math.isfinite(number):
            raise at_users_line(IndexingError, f"{number} is not a whole number")
        return int(number)

    def __bool__(self) -> bool:
        value = self.builder.known_value(self.id)
        if value is None:
            raise _branch_error()
        if self.size != 1:
            raise at_users_line(
                ShapeError, f"the truth value of a traced value of shape {self.shape} is ambiguous"
            )
        error = not_by_comparisons(TraceError)
        if error is not None:
            raise error
        return bool(value)

    def __int__(self) -> int:
        return self._whole(NO_NUMBER, "int() of a traced value is known under grad or jvp alone")

    def __trunc__(self) -> int:
        return int(self)

    def __floor__(self) -> int:
        return int(np.floor(self))

    def __ceil__(self) -> int:
        return int(np.ceil(self))

    def __index__(self) -> int:
        integer = self._whole(
            f"{NO_NUMBER}, so it is neither an index nor a number of turns", NO_INTEGER
        )
        if integer != self.builder.known_value(self.id):
            raise at_users_line(
                IndexingError,
                f"{self.builder.known_value(self.id)} is not a whole number",
                "write int(x) for an index or a number of turns",
            )
        return integer

    def item(self, *args: Any) -> Any:
        """Return an element as a traced number, whose derivative is kept."""
        if self.builder.known_value(self.id) is None:
            self.__float__()
        if args:
            flat = arrays.reshape(self, -1)
            return flat[args[0]] if len(args) == 1 else self[args]
        if self.size != 1:
            raise at_users_line(
                ShapeError, f"item() needs one element, and the shape is {self.shape}"
            )
        return arrays.reshape(self, -1)[0]

    def _require_no_scipy(self) -> None:
        """Raise `TraceError` if SciPy converts to a number; some of its solvers drop the error."""
        error = not_through_scipy(TraceError)
        if error is not None:
            if hasattr(self.builder, "dropped"):
                self.builder.dropped = error
            raise error

    @property
    def device(self) -> NoReturn:
        """Asked for by SciPy's solvers, which take traced values for arrays of another library."""
        raise not_through_scipy(TraceError) or AttributeError("a traced value has no device")

    def __float__(self) -> NoReturn:
        self._require_no_scipy()
        raise at_users_line(
            AssignedError,
            NO_NUMBER,
            "use NumPy's functions (np.sin) instead of those of `math`",
        )

    def __format__(self, spec: str) -> str:
        if not spec:
            return repr(self)
        value = self.builder.known_value(self.id)
        return self.__float__() if value is None else format(np.asarray(value)[()], spec)

    __complex__ = __float__

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self._require_no_scipy()
        raise at_users_line(
            TraceError,
            "a traced value cannot be turned into a NumPy array",
            INSTEAD,
        )


def _branch_error() -> TraceError:
    """Return the error for a branch in code that is traced without values."""
    through_scipy = not_through_scipy(TraceError)
    if through_scipy is not None:
        return through_scipy
    site = user_location()
    loop = (site.text or "").startswith("while")
    hint = LOOP_INSTEAD if loop else BRANCH_INSTEAD
    return site.error(TraceError, "a branch on a traced value cannot be recorded in a graph", hint)

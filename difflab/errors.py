"""The exception tree: everything difflab raises.

::

    DifflabError
    ├── InputError                 the user's input is at fault (exit code 2)
    │   ├── ParseError             the text is not a program of the language
    │   ├── ShapeError             the shapes of an operation's arguments do not fit
    │   │   ├── IndexingError      an index is out of bounds; also an IndexError
    │   │   └── UnsizedError       a scalar has no length; also a TypeError
    │   ├── PointError             values are missing, unknown or of the wrong shape
    │   ├── ResourceError          it needs more memory than is available
    │   ├── DeviceError            arrays of different devices are mixed
    │   ├── DomainError            the function is undefined at the point
    │   ├── TraceError             Python code that cannot be recorded as a graph
    │   ├── GraphMismatchError     a graph does not compute what its Python code does
    │   ├── TapeError              an eager tensor cannot do this with its tape as it is
    │   ├── MissingAttributeError  a NumPy attribute that traced values lack
    │   ├── AnomalyError           a computation under `detect_anomaly` gave nan or inf
    │   └── ConvergenceError       a solver of `difflab.solve` finds no solution, or none that has
    │                              a derivative
    ├── UnsupportedError           a method does not support the request; a row, not a crash
    │   └── MissingDependencyError an optional package is missing or broken
    ├── ConsistencyError           two parts of difflab disagree: a bug in difflab
    └── MethodTimeout              a method exceeded its time or memory limit
"""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    r"""Return `text` with control and formatting characters shown as escapes.

    Examples
    --------
    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return "".join(
        character if unicodedata.category(character)[0] != "C" else _escape(character)
        for character in text
    )


def described(error: BaseException) -> str:
    r"""Return the type and the message of an exception of any package, in one line.

    Examples
    --------
    >>> described(OSError("no such\nlibrary")), described(SystemExit())
    ('OSError: no such library', 'SystemExit')
    """
    try:
        text = " ".join(str(error).split())
    except Exception as failure:
        text = f"its message cannot be printed ({type(failure).__name__})"
    return printable(f"{type(error).__name__}: {text}".rstrip(": "))


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


class DifflabError(Exception):
    """Base class of all exceptions that difflab raises."""


class InputError(DifflabError):
    r"""The input is at fault; `render` marks the position in the source when it is known.

    Parameters
    ----------
    message : str
        What is wrong, in one sentence.
    text : str, optional
        The source text the error is about.
    span : (int, int), optional
        Start and end offsets of the error in `text`.
    hint : str, optional
        What to do instead.

    Examples
    --------
    >>> print(InputError("unknown name 'y'", text="x + y", span=(4, 5)).render())
    unknown name 'y'
      x + y
          ^
    """

    def __init__(
        self,
        message: str,
        *,
        text: str | None = None,
        span: tuple[int, int] | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.text = text
        self.span = span
        self.hint = hint

    def __str__(self) -> str:
        return self.render()

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.text, self.span, self.hint)

    def render(self, width: int = 80) -> str:
        """Return the message, the line with a caret under the error, and the hint."""
        lines = [printable(self.message)]
        if self.text is not None and self.span is not None:
            lines += _excerpt(self.text, self.span, width)
        if self.hint:
            lines.append(f"hint: {printable(self.hint)}")
        return "\n".join(lines)


def _rebuild(
    kind: type[InputError],
    message: str,
    text: str | None,
    span: tuple[int, int] | None,
    hint: str | None,
) -> InputError:
    return kind(message, text=text, span=span, hint=hint)


def _excerpt(text: str, span: tuple[int, int], width: int) -> list[str]:
    """Return the line holding `span`, cut to `width`, and the carets under it."""
    start, end = span
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    room = max(width - 8, 20)
    left = line_start if start - line_start <= room // 2 else start - room // 2
    right = min(line_end, left + room)
    before = printable(text[left:start])
    marked = printable(text[start : max(start, min(end, right))])
    after = printable(text[max(start, min(end, right)) : right])
    prefix = "… " if left > line_start else ""
    suffix = " …" if right < line_end else ""
    number = text.count("\n", 0, line_start) + 1
    margin = f"line {number}: " if "\n" in text else "  "
    carets = "^" + "~" * (_columns(marked) - 1)
    pad = " " * _columns(margin + prefix + before)
    return [margin + prefix + before + marked + after + suffix, pad + carets]


def _columns(text: str) -> int:
    """Return the number of terminal columns that `text` fills."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


class ParseError(InputError):
    """The text is not a program of difflab's language."""


class ShapeError(InputError):
    """The shapes of an operation's arguments do not fit together."""


class IndexingError(ShapeError, IndexError):
    """An index is out of bounds, or there are too many indices."""


class UnsizedError(ShapeError, TypeError):
    """A scalar has no length and cannot be iterated over."""


class MissingAttributeError(InputError, AttributeError):
    """A traced value or a tensor lacks this attribute of NumPy arrays."""


class PointError(InputError):
    """Values at the point are missing, unknown or of the wrong shape."""


class ResourceError(InputError):
    """A computation needs more memory than is available; the message gives the bytes."""


class DeviceError(InputError):
    """Arrays of different devices are mixed; the message names each array and its device."""


class DomainError(InputError):
    """The function is undefined at the point; the message names the subexpression."""


class GraphMismatchError(InputError):
    """A graph does not have the results of the code from which it was recorded."""


class TraceError(InputError):
    """Python code did something that cannot be recorded as a graph."""


class TapeError(InputError):
    """The tape cannot do this: nothing was recorded, it was freed, or values were overwritten."""


class AnomalyError(InputError):
    """A computation under `detect_anomaly` gave nan or inf; the message says where."""


class ConvergenceError(InputError):
    """A solver of `difflab.solve` finds no solution, or one that has no derivative."""


class UnsupportedError(DifflabError):
    """A method does not support the request; the comparison shows it as a row."""


class MissingDependencyError(UnsupportedError):
    """An optional package is missing or broken; the message gives the command to install it.

    Examples
    --------
    >>> print(MissingDependencyError("llvmlite", extra="native"))
    llvmlite is not installed; add it with: pip install 'difflab[native]'
    >>> print(MissingDependencyError("llvmlite", extra="native", fault="broken: OS"))
    llvmlite is installed and broken: OS; repair it with: pip install --force-reinstall llvmlite
    >>> print(MissingDependencyError("python-flint"))
    python-flint is not installed; add it with: pip install python-flint
    """

    def __init__(self, package: str, *, extra: str = "", fault: str = "") -> None:
        source = f"'difflab[{extra}]'" if extra else package
        absent = f"is not installed; add it with: pip install {source}"
        broken = (
            f"is installed and {fault}; repair it with: pip install --force-reinstall {package}"
        )
        super().__init__(f"{package} {broken if fault else absent}")
        self.package = package
        self.extra = extra
        self.fault = fault

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (self.package, self.extra, self.fault)


def _again(package: str, extra: str, fault: str) -> MissingDependencyError:
    return MissingDependencyError(package, extra=extra, fault=fault)


class ConsistencyError(DifflabError):
    """Two parts of difflab disagree; raised instead of returning a wrong result."""


class MethodTimeout(DifflabError):
    """A method exceeded its time or memory limit; the message says how far it got.

    Attributes
    ----------
    progress : str
        The last progress that the method's process reported.
    """

    progress: str = ""

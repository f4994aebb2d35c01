"""A method in a process of its own, which can be stopped whatever the method is doing.

Plug-ins run this way: they may hang where no exception is delivered, exit the interpreter, modify
their arguments, or print. They share nothing with this process, and are timed in their own.
"""

from __future__ import annotations

from difflab.core.worker import STARTING, UnsentError
from difflab.errors import DifflabError, UnsupportedError
from difflab.methods.plugged import Broken, Description
from difflab.methods.process.derivative import MethodProcess, ProcessDerivative
from difflab.methods.protocol import Family, Method, Prepared, Problem


class Remote(MethodProcess):
    """A method that another process loads, prepares and calls.

    Parameters
    ----------
    name : str
        The name of a method: difflab's own, a peer, or one that is plugged in.
    value : str
        The value of the entry point of one that is plugged in.
    here : Method, optional
        The method in this process, if it is safe to load: its description is known without
        waiting, and it handles problems that cannot be sent.

    Attributes
    ----------
    here : Method or None
        The same.
    """

    def __init__(self, name: str, value: str = "", here: Method | None = None) -> None:
        super().__init__("difflab.methods.remote_worker", name, value)
        self.name = name
        self._value = value
        self.here = here
        self._loaded: Description | None = None

    @property
    def family(self) -> Family:
        """The family to which it belongs."""
        return (self.here or self._describe()).family

    @property
    def summary(self) -> str:
        """A one-line description."""
        return (self.here or self._describe()).summary

    @property
    def orders(self) -> tuple[int, ...]:
        """The supported orders of derivative."""
        return (self.here or self._describe()).orders

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes beside float64 in which it computes."""
        return getattr(self.here, "dtypes", ())

    def missing(self) -> str | None:
        """Return why the method cannot be loaded or cannot run here, or None."""
        return self._describe().missing

    def wait(self) -> None:
        """Wait until the process has loaded the method, or has failed to."""
        self._describe()

    def prepare(self, problem: Problem) -> Prepared:
        """Let the process prepare the method for `problem`.

        Raises
        ------
        UnsupportedError
            The method cannot be used, or cannot differentiate this function.
        MethodTimeout
            It took longer than ``problem.timeout``.
        DifflabError
            It failed, or its process ended.
        """
        reason = self.missing()
        if reason is not None:
            raise UnsupportedError(reason)
        if problem.function is None and self.here is not None:
            return self.here.prepare(problem)  # Python code cannot be sent
        try:
            return ProcessDerivative(self, problem)
        except UnsentError:
            if self.here is None:
                raise
            return self.here.prepare(problem)

    def _describe(self) -> Description:
        """Return the description of the loaded method; it is requested once."""
        if self._loaded is None:
            worker = self.running()
            try:
                worker.wait()
                self._loaded = worker.request("describe", timeout=STARTING)
            except DifflabError as error:
                self._loaded = self._unusable(f"cannot be used: {error}")
        return self._loaded

    def _unusable(self, why: str) -> Description:
        broken = Broken(self.name, f"{self._value or self.name} {why}")
        like = self.here or broken
        return Description(self.name, like.family, like.orders, like.summary, broken.reason)

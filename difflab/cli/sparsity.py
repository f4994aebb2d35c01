"""``difflab derive --sparsity``: the sparsity pattern of a derivative, as text and picture."""

from __future__ import annotations

from pathlib import Path

from difflab.cli.functions import Subject
from difflab.cli.output import deliver, screen
from difflab.core.wording import without_comments
from difflab.errors import InputError


def show_sparsity(
    subject: Subject,
    hessian: bool | None,
    wrt: list[str] | None,
    destination: Path | None,
    plot: Path | None,
) -> int:
    """Write the pattern of the Jacobian or Hessian and the savings; return the exit code.

    Parameters
    ----------
    subject : Subject
        The function.
    hessian : bool, optional
        Whether to show the Hessian; by default it is shown for a scalar output.
    wrt : list of str, optional
        The inputs and elements that are differentiated by, by default all.
    destination : Path, optional
        The file of the text, by default standard output.
    plot : Path, optional
        The file of the picture.
    """
    from difflab.autodiff.sparsity import sparse_hessian, sparse_jacobian
    from difflab.report import spy

    function = subject.function
    if function.n == 0:
        raise InputError("the expression has no variable to differentiate by")
    second = function.m == 1 if hessian is None else hessian
    derivative = sparse_hessian(function, wrt=wrt) if second else sparse_jacobian(function, wrt=wrt)
    title = f"{'Hessian' if second else 'Jacobian'} of {without_comments(subject.text).strip()}"
    if wrt is not None:
        title += f" by {', '.join(wrt)}"
    files = {plot: spy.picture(derivative, title, plot.suffix[1:].lower())} if plot else {}
    width = screen(to_file=destination is not None, usual=88)["width"]
    deliver(spy.text(derivative, title, width), destination, files)
    return 0

"""Graph to CUDA C++: C's statements, a function for each thread and a kernel over points."""

from __future__ import annotations

from collections.abc import Sequence

from difflab.errors import UnsupportedError
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.language.printers.c import CPrinter
from difflab.language.printers.statements import TapeVariables

_PER_THREAD = 16_384
"""Maximum number of elements of all intermediate arrays, which each thread has in its memory."""
_KEYWORDS = (
    "and bool catch class delete explicit export false friend mutable namespace new not nullptr "
    "operator or private protected public template this throw true try typename using virtual xor "
    "blockIdx blockDim threadIdx gridDim"
)


def cuda(function: Function, name: str = "f") -> str:
    """Return CUDA C++: a function ``f(x, y)`` of one point, and a kernel over many.

    Parameters
    ----------
    function : Function
        A function, parsed or derived.
    name : str
        What the function is called; the kernel is called ``f_points``.

    Returns
    -------
    str
        The source. `x` holds the inputs one after the other, in the order of ``function.inputs``,
        and `y` receives the outputs; arrays are flat and row-major. The function can be called on
        the host as well. The kernel takes the points one after the other, and their number.

    Raises
    ------
    UnsupportedError
        There is no function for an operation, such as ``exp_remainder`` of a variable order; a
        thread has no memory for the intermediate arrays, or none that grows, which the derivative
        of a `while_loop` needs.

    Examples
    --------
    >>> import difflab as dl
    >>> print(cuda(dl.parse("ln(x1) + x1*x2 - sin(x2)")))
    #include <math.h>
    <BLANKLINE>
    // x: x1, x2; y: y
    __host__ __device__ void f(const double *x, double *y)
    {
        const double x1 = x[0];
        const double x2 = x[1];
        y[0] = log(x1) + x1 * x2 - sin(x2);
    }
    <BLANKLINE>
    __global__ void f_points(const double *x, double *y, long points)
    {
        const long k = blockIdx.x * (long)blockDim.x + threadIdx.x;
        if (k < points)
            f(x + 2 * k, y + k);
    }
    """
    return _Cuda(function, name).source()


class _Cuda(CPrinter):
    language = "CUDA"
    reserved = CPrinter.reserved | frozenset(_KEYWORDS.split())

    def source(self) -> str:
        """Return the source of the function and of the kernel."""
        self.unpack()
        self.compute()
        self.pack()
        room = sum(size for _, _, size in self.declared)
        if room > _PER_THREAD:
            raise UnsupportedError(
                f"the intermediate arrays have {room:,} numbers, and a thread of CUDA should have "
                f"at most {_PER_THREAD:,}; difflab.compile(f, target='cupy') runs array by array"
            )
        n, m = self.view.function.n, self.view.function.m
        x, y = (f"{'' if size == 1 else f'{size} * '}k" for size in (n, m))
        return "\n".join(
            [
                "#include <math.h>",
                "",
                *[line for text in self.definitions().values() for line in (text, "")],
                f"// {self.contents()}",
                f"__host__ __device__ void {self.name}"
                f"(const double *{self.point}, double *{self.result})",
                "{",
                *self.lines,
                "}",
                "",
                f"__global__ void {self.name}_points(const double *x, double *y, long points)",
                "{",
                "    const long k = blockIdx.x * (long)blockDim.x + threadIdx.x;",
                "    if (k < points)",
                f"        {self.name}(x + {x}, y + {y});",
                "}",
            ]
        )

    def definitions(self) -> dict[str, str]:
        """Return the functions that the templates call, for both sides."""
        return {
            name: text.replace("static double", "__host__ __device__ static double")
            for name, text in super().definitions().items()
            if not text.endswith(";")  # declared by CUDA
        }

    def tape(self, shapes: Sequence[Shape]) -> TapeVariables:
        raise UnsupportedError(
            "a thread of CUDA has no array that grows, which the derivative of a while loop needs; "
            "use a loop of a fixed number of steps, or another language"
        )

"""`Tensor`: an array that records the operations from which it was computed.

It supports Python's operators and NumPy's functions. The names mean what they mean in PyTorch.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from difflab.arrays.scipy_calls import not_by_comparisons, not_through_scipy, warn_of_scipy
from difflab.autodiff.layers import Evaluation, Layer
from difflab.core.apply import HOST, JAX, array_module, device_module, module_of, on_host
from difflab.core.conversions import MASKED, as_reals, host_reals, refused
from difflab.core.place import at_users_line
from difflab.eager.custom import record_custom
from difflab.eager.recording.plan import cast, sent
from difflab.eager.recording.record import (
    FLOAT64,
    TapedArray,
    is_floating,
    record,
    require_floating,
)
from difflab.eager.recording.tape import (
    MODE,
    WATCHED,
    Accumulation,
    Hook,
    TapeStep,
    mark_inference,
    no_grad,
    require_recordable,
    storage_of,
)
from difflab.eager.sweep.backward import Calculator, TensorCalculator, arrive, pull_back, show
from difflab.eager.sweep.replay import replayed
from difflab.eager.tapes import Tape
from difflab.eager.tensors.operators import Operators, ViewedArray
from difflab.errors import DeviceError, InputError, ShapeError, TapeError
from difflab.graph.checks import require_flag
from difflab.graph.custom.call import CustomCall
from difflab.graph.function import Function

# --- conversions that leave the tape: to scalars, arrays and text --------------------------------

INSTEAD = (
    "instead of assigning z[i] = tensor into a NumPy array z, make z a tensor with"
    " dl.tensor(np.zeros(n)), or join the parts with np.stack([…])"
)


class Conversions(TapedArray):
    """Shape and values of a tensor: as scalars, arrays and text, where no derivative is lost."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        shape: tuple[int, ...] = self._data.shape
        return shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's dtype of the elements."""
        dtype: np.dtype[Any] = self._data.dtype
        return dtype

    @property
    def _mask(self) -> NoReturn:
        """Asked for by `numpy.ma`, which takes the attribute ``_data`` without its derivative."""
        raise refused(MASKED, "an operand of a tensor operation")

    def item(self) -> Any:
        """Return the only element as a Python number."""
        if self._data.size != 1:
            raise ShapeError(f"item() needs a tensor of one element, but the shape is {self.shape}")
        return self._data.item()

    def numpy(self) -> NDArray[Any]:
        """Return the values as a NumPy array that cannot be written to.

        Raises
        ------
        TapeError
            The tensor requires grad: NumPy's operations on the array would not be recorded.
        """
        if self._step is not None:
            raise not_through_scipy(TapeError) or at_users_line(
                TapeError,
                "a tensor that requires grad is not converted to a NumPy array implicitly, because"
                " no derivative would flow back from the array",
                "write tensor.detach().numpy(), or apply NumPy's functions to the tensor;"
                f" {INSTEAD}",
            )
        if module_of(self._data) is not np:
            raise DeviceError(
                "a tensor on a device is not converted to a NumPy array implicitly",
                hint="tensor.detach().array() is its device array; get() copies that to the host",
            )
        view = np.asarray(self._data).view()
        view.flags.writeable = False
        return view

    def array(self) -> Any:
        """Return a copy of the values as an array on their device: NumPy's, or CuPy's."""
        if self._step is not None:
            raise TapeError(
                "no derivative flows back from the array of a tensor that requires grad",
                hint="write tensor.detach().array()",
            )
        return module_of(self._data).array(self._data)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    @property
    def device(self) -> NoReturn:
        """Asked for by SciPy's solvers, which take tensors for arrays of another library."""
        raise not_through_scipy(TapeError) or AttributeError("a tensor has no attribute 'device'")

    def _number(self, convert: Callable[[Any], Any]) -> Any:
        if self._step is not None:
            warn_of_scipy()
            raise not_through_scipy(TapeError) or at_users_line(
                TapeError,
                f"{convert.__name__}() of a tensor that requires grad would lose its derivative",
                "read the number with tensor.item(), or use NumPy's functions (np.sin) instead of"
                f" those of `math`; {INSTEAD}",
            )
        return convert(self.item())

    def __float__(self) -> float:
        number: float = self._number(float)
        return number

    def __int__(self) -> int:
        number: int = self._number(int)
        return number

    def __bool__(self) -> bool:
        if self._data.size != 1:
            raise ShapeError(f"the truth value of a tensor of shape {self.shape} is ambiguous")
        error = None if self._step is None else not_by_comparisons(TapeError)
        if error is not None:
            raise error
        return bool(self._data)

    def __repr__(self) -> str:
        numbers = np.array2string(on_host(self._data), separator=", ", prefix="tensor(")
        step = self._step
        note = f", grad_fn={step}" if isinstance(step, TapeStep) else ", requires_grad=True"
        return f"tensor({numbers}{note if step is not None else ''})"


# --- tensors -------------------------------------------------------------------------------------

ONE = np.float64(1)


class Tensor(Conversions, Operators):
    """An array with a derivative; created by `dl.tensor` and by operations on tensors.

    Attributes
    ----------
    grad : Tensor or None
        The gradient accumulated by the `backward` calls so far; kept by leaves, and by tensors on
        which `retain_grad` was called.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> x = dl.tensor([1.0, 2.0], requires_grad=True)
    >>> np.sum(x * x).backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = ()

    def __difflab_custom__(self, call: CustomCall, args: Sequence[Any]) -> tuple[list[Any], bool]:
        return record_custom(Tensor, call, args)

    def __difflab_function__(
        self,
        function: Function,
        values: Sequence[Any],
        prepare: Callable[[Function], Evaluation],
        cache: dict[str, Any],
    ) -> list[Any]:
        """Apply a function to values that may have batch axes, as one recorded operation."""
        layer: Layer | None = cache.get("layer")
        if layer is None:
            layer = cache["layer"] = Layer(function, prepare)
        return layer(values)

    # Properties.

    @property
    def requires_grad(self) -> bool:
        """Whether derivatives flow to or through this tensor; may be set on leaves."""
        return self._step is not None

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        if isinstance(self._step, TapeStep):
            if wanted:
                return
            raise TapeError(
                "requires_grad can be switched off on leaves only",
                hint="use tensor.detach() for the same values without the tape",
            )
        if wanted == self.requires_grad:
            return
        grad = self.grad
        if wanted:
            require_floating(self._data)
            if not MODE.inference:
                require_recordable(self, "requires_grad")
        self._step = Accumulation(self.dtype, grad) if wanted else None
        if self._step is not None:
            self._step.owner = weakref.ref(self)
        self._grad = grad

    @property
    def is_leaf(self) -> bool:
        """Whether it is not the result of a recorded operation."""
        return not isinstance(self._step, TapeStep)

    @property
    def grad_fn(self) -> TapeStep | None:
        """The recorded operation whose result it is; None for leaves."""
        return self._step if isinstance(self._step, TapeStep) else None

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient, or None."""
        if isinstance(self._step, Accumulation):
            return self._step.grad  # type: ignore[no-any-return]  # a Tensor, which the tape cannot name
        if self._grad is None and isinstance(self._step, TapeStep) and not self.retains_grad:
            warnings.warn(
                "the gradient of a tensor that is not a leaf is not kept;"
                " call its retain_grad() before backward()",
                stacklevel=2,
            )
        return self._grad  # type: ignore[no-any-return]

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise InputError(f"grad is a tensor or None, not {type(value).__name__}")
        if value is not None and value.shape != self.shape:
            raise ShapeError(f"a gradient of shape {value.shape} for a tensor of {self.shape}")
        if isinstance(self._step, Accumulation):
            self._step.grad = value
        else:
            self._grad = value

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the accumulated gradient: `grad` is None again, or else an array of zeros."""
        grad = self.grad
        zeros: Any = None if set_to_none or grad is None else np.zeros_like(grad.detach())
        self.grad = zeros

    # Copies without the tape.

    def detach(self) -> Tensor:
        """Return the same values without the tape; a change in place of one changes both."""
        view = self._view
        if view is not None:
            with no_grad():
                return view.applied(view.owner.detach())  # type: ignore[no-any-return]
        storage = storage_of(self)
        twin = Tensor(self._data, None, storage)
        storage.join(self, twin)
        return twin

    def to(self, device: Any) -> Tensor:
        """Return the tensor on a device; derivatives flow back to where it was.

        Parameters
        ----------
        device : str or module
            ``"cpu"`` for NumPy, ``"cuda"`` for CuPy, or an array module. A tensor that is there
            already is returned itself.

        Examples
        --------
        >>> import difflab as dl
        >>> x = dl.tensor([1.0, 2.0])
        >>> x.to("cpu") is x
        True
        """
        home, origin = device_module(device), module_of(self._data)
        if home is origin:
            return self
        moved: Tensor = record(sent, (self,), {"home": home, "origin": origin})
        return moved

    def __reduce__(self) -> tuple[Callable[..., Tensor], tuple[Any, ...]]:
        """Copy or pickle a leaf: its values, `requires_grad`, and its gradient."""
        if isinstance(self._step, TapeStep):
            raise TapeError(
                "the result of a recorded operation cannot be copied or pickled with its tape",
                hint="copy tensor.detach(), with the same values, or the leaves",
            )
        grad = self.grad
        return _restored, (self._data, self.requires_grad, None if grad is None else grad._data)

    # Derivatives.

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Hook:
        """Call `hook` with each gradient of this tensor; a returned tensor replaces the gradient.

        Returns
        -------
        Hook
            Its ``remove()`` unregisters the hook.
        """
        if self._step is None:
            raise TapeError(
                "a hook on a tensor that does not require grad would never be called",
                hint="create the tensor with dl.tensor(…, requires_grad=True)",
            )
        if self._step.hooks is None:
            self._step.hooks = {}
        return Hook(self._step.hooks, hook)

    def retain_grad(self) -> None:
        """Keep the gradient in `grad` of a tensor that is not a leaf."""
        if self._step is None:
            raise TapeError("retain_grad() on a tensor that does not require grad")
        if isinstance(self._step, TapeStep):
            self._step.retained = weakref.ref(self)

    @property
    def retains_grad(self) -> bool:
        """Whether a tensor that is not a leaf keeps its gradient."""
        step = self._step
        return isinstance(step, TapeStep) and step.retained is not None and step.retained() is self

    def tape(self) -> Tape:
        """Return the recorded steps of this tensor; ``draw()`` and ``table()`` show them.

        Raises
        ------
        TapeError
            Nothing was recorded, or an earlier `backward` freed it.

        Examples
        --------
        >>> import difflab as dl
        >>> x = dl.tensor(3.0, requires_grad=True)
        >>> (x * x).tape().draw()
        <drawing of tape of v1 = multiply(x1, x1): 1 input · 1 operation · 1 output · depth 1>
        """
        if not isinstance(self._step, TapeStep):
            raise TapeError(
                "no operation was recorded for this tensor",
                hint="compute it from tensors made with dl.tensor(…, requires_grad=True)",
            )
        tape = Tape(self._data, self._step)
        tape.steps  # noqa: B018  # raises if the tape was freed
        return tape

    def backward(
        self,
        gradient: Tensor | ArrayLike | None = None,
        retain_graph: bool = False,
        create_graph: bool = False,
    ) -> None:
        """Add ∂(self)/∂(leaf), times `gradient`, to the `grad` of every leaf it depends on.

        Parameters
        ----------
        gradient : tensor or array, optional
            The cotangent ȳ, of this tensor's shape; may be omitted for one element, where it is 1.
        retain_graph : bool
            Keep the tape, so that `backward` can be called again. Otherwise it is freed.
        create_graph : bool
            Record the reverse sweep, so that the gradient can be differentiated; keeps the tape.

        Raises
        ------
        TapeError
            Nothing was recorded, the tape was freed, a value it needs was changed in place, or
            the tensor has several elements and no `gradient` is given.
        """
        if self._step is None:
            raise TapeError(
                "backward() has no tape: this tensor does not require grad",
                hint="create the inputs with dl.tensor(…, requires_grad=True), and do not compute"
                " under no_grad() or from detached values",
            )
        seed = self._seed(gradient, create_graph)
        if WATCHED and MODE.watch is not None:
            MODE.watch.check(self, keep=retain_graph or create_graph)
        before, MODE.enabled = MODE.enabled, create_graph
        try:
            arrive(self._swept(seed, keep=retain_graph, create_graph=create_graph), seed, Tensor)
        finally:
            MODE.enabled = before

    def _swept(self, seed: Any, *, keep: bool, create_graph: bool) -> list[tuple[Any, Any]]:
        """Return the leaves that this tensor depends on, each with its cotangent."""
        root = self._step
        if not isinstance(root, TapeStep):
            return [(root, seed)]
        cotangents = None if create_graph else replayed(root, seed, keep=keep)
        if cotangents is not None:
            return cotangents
        xp = module_of(self._data)
        calculator = TensorCalculator(Tensor, xp) if create_graph else Calculator(xp)
        with np.errstate(all="ignore"):
            shown = partial(show, kind=Tensor)
            keep = keep or create_graph
            return pull_back(root, seed, keep=keep, calculator=calculator, show=shown)

    def _seed(self, gradient: Any, create_graph: bool) -> Any:
        """Return the seed cotangent: an array, or a tensor if the sweep is recorded."""
        if gradient is None:
            data = self._data
            if data.size != 1:
                raise TapeError(
                    f"backward() of a tensor of shape {self.shape} needs a cotangent",
                    hint="pass gradient=…, of that shape, or call sum() first",
                )
            seed: Any = ONE if data.dtype is FLOAT64 else data.dtype.type(1)
            if data.shape or type(data) not in HOST:
                seed = module_of(data).full(data.shape, seed)
        else:
            seed = gradient if isinstance(gradient, Tensor) else self._numbers(gradient)
            array_module(
                (self._data, getattr(seed, "_data", seed)),
                "backward()",
                ("the tensor", "its gradient"),
            )
            if seed.shape != self.shape:
                raise ShapeError(f"a gradient of shape {seed.shape} for a tensor of {self.shape}")
        if create_graph:
            seed = seed if isinstance(seed, Tensor) else Tensor(seed)
            return seed if seed.dtype == self.dtype else seed.__difflab_cast__(self.dtype)
        return seed._data.astype(self.dtype) if isinstance(seed, Tensor) else seed

    def _numbers(self, gradient: Any) -> Any:
        """Return a gradient that is not a tensor as an array of this tensor's dtype."""
        array = as_reals(gradient, "the gradient of backward()")
        if module_of(array).__name__ == JAX:
            array = host_reals(array, "the gradient of backward()")
        return module_of(array).array(array, self.dtype)

    def __difflab_cast__(self, dtype: np.dtype[Any]) -> Tensor:
        """Return the values converted to `dtype`; derivatives flow through."""
        converted: Tensor = record(cast, (self,), {"dtype": dtype})
        return converted


class TensorView(ViewedArray, Tensor):  # type: ignore[misc]  # every tensor has `_view`
    """A tensor that is a view of another one."""

    __slots__ = ()


TensorView.__name__ = "Tensor"  # messages name the type
TapedArray._own, TapedArray._viewing = Tensor, TensorView


def _restored(data: Any, requires_grad: bool, grad: Any) -> Tensor:
    """Return a leaf that holds copies of its values and its gradient."""
    own = module_of(data).array(data)
    leaf = Tensor(own, Accumulation(own.dtype) if requires_grad else None)
    if grad is not None:
        leaf.grad = Tensor(module_of(grad).array(grad))
    return leaf


# --- creation ------------------------------------------------------------------------------------


def tensor(data: ArrayLike, requires_grad: bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """Return a tensor that holds a copy of `data`.

    Parameters
    ----------
    data : array_like or Tensor
        Real elements; a CuPy array stays on its device. Integers become float64, so that they
        can have derivatives.
    requires_grad : bool
        Whether operations on it are recorded, for `Tensor.backward`.
    dtype : dtype, optional
        The dtype of the elements.

    Returns
    -------
    Tensor
        A leaf.

    Raises
    ------
    InputError
        `data` are not real numbers, or `requires_grad` is set for a dtype without derivatives.

    Examples
    --------
    The derivative of z = (x + y)·y at (2, 3) is (y, x + 2y):

    >>> import difflab as dl
    >>> x, y = dl.tensor(2.0, requires_grad=True), dl.tensor(3.0, requires_grad=True)
    >>> z = (x + y) * y
    >>> z.backward()
    >>> x.grad.item(), y.grad.item()
    (3.0, 8.0)
    """
    source: Any = data._data if isinstance(data, Tensor) else data
    kind: type = type(source)
    home, make = np, np.array  # type: Any, Any
    if kind is list:
        source, make = as_reals(source, "the data of a tensor"), np.asarray  # a new array
    elif not (kind is float or (kind is np.ndarray and source.dtype is FLOAT64)):
        if not (is_floating(source) or isinstance(data, Tensor)):
            source = as_reals(source, "the data of a tensor")
        home = module_of(source)
        make = home.array
    if home is not np and home.__name__ == JAX:
        raise InputError(
            "a tensor holds an array of NumPy or CuPy, not of JAX", hint="pass np.asarray(array)"
        )
    try:
        array: Any = make(source, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise InputError(f"the elements of a tensor must be numbers: {error}") from None
    if dtype is None and array.dtype.kind in "iu":
        array = array.astype(np.float64)
    if array.dtype.kind not in "biuf":
        raise InputError(f"the elements of a tensor must be real numbers, not {array.dtype}")
    require_flag(requires_grad, "requires_grad", "tensor")
    if requires_grad:
        require_floating(array)
    made = Tensor(array, Accumulation(array.dtype) if requires_grad else None)
    if MODE.inference:
        mark_inference(made)
    return made

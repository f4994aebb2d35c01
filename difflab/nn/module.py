"""`Module`: parameters and buffers with names; its calls, and the keys that layers draw from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from contextvars import ContextVar
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from difflab.arrays import random
from difflab.core.apply import device_module, module_of, on_host, sent_to
from difflab.core.place import at_users_line
from difflab.core.system import check_destination, open_regular, reason, write_whole
from difflab.eager import Tensor, no_grad, tensor
from difflab.errors import InputError, ShapeError, TraceError
from difflab.graph.node import Node

__all__ = ["Module", "Parameter", "functional_call", "load", "manual_seed", "save"]

State = dict[str, NDArray[Any]]


def Parameter(data: ArrayLike | Tensor, requires_grad: bool = True) -> Tensor:
    """Return a tensor that requires grad: as an attribute of a module it is a parameter."""
    return tensor(data, requires_grad=requires_grad)


class Module:
    """A function with parameters: a subclass defines ``__init__`` and ``forward``.

    Attributes that are tensors requiring grad are parameters, in the order of assignment;
    attributes that are modules are parts, whose names are prefixes.

    Attributes
    ----------
    training : bool
        Set by `train` and `eval`; read by `Dropout` and batch normalisation.

    Examples
    --------
    >>> from difflab import nn
    >>> class Line(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.slope = nn.Parameter(2.0)
    ...     def forward(self, x):
    ...         return self.slope * x
    >>> Line()(3.0)
    tensor(6., grad_fn=<step multiply>)
    """

    training = True
    __difflab_holder__ = True  # `dl.jit` watches its attributes, as those of the user's objects

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor) and value.requires_grad and value.is_leaf:
            vars(self).setdefault("_parameters", {})[name] = None
        super().__setattr__(name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return ``self.forward(*args, **kwargs)``; traced, parameters are constants."""
        with _holding(self, None, args):
            return self.forward(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute; a subclass defines it."""
        raise InputError(f"{type(self).__name__} has no method forward(self, x)")

    def register_buffer(self, name: str, value: ArrayLike) -> None:
        """Make an array an attribute that is no parameter, but part of the state."""
        vars(self).setdefault("_buffers", {})[name] = None
        setattr(self, name, np.array(value))

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield the modules that are attributes of this one, each with its name."""
        return ((name, part) for name, part in vars(self).items() if isinstance(part, Module))

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """Yield this module and its parts, each with its name."""
        yield prefix, self
        for name, part in self.named_children():
            yield from part.named_modules(f"{prefix}.{name}" if prefix else name)

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Yield each parameter with its name, such as ``"0.weight"``."""
        for path, (owner, name) in _places(self, "_parameters").items():
            yield path, getattr(owner, name)

    def parameters(self) -> Iterator[Tensor]:
        """Yield the parameters."""
        return (parameter for _, parameter in self.named_parameters())

    def state_dict(self) -> State:
        """Return a copy of every parameter and buffer as an array, by name."""
        return {path: _array(getattr(owner, name)) for path, (owner, name) in _places(self).items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set every parameter and buffer to the values of `state`, or none.

        Raises
        ------
        InputError
            A name is missing or unknown.
        ShapeError
            An array has another shape.
        """
        wanted = _places(self)
        _check_names("the state lacks", wanted.keys() - state.keys())
        _check_names("the module has no", state.keys() - wanted.keys())
        arrays = {path: _array(state[path]) for path in wanted}
        for path, (module, name) in wanted.items():
            shape = getattr(module, name).shape
            if arrays[path].shape != shape:
                raise ShapeError(f"{path} has shape {shape}, not {arrays[path].shape}")
        with no_grad():
            for path, (module, name) in wanted.items():
                held = getattr(module, name)
                if isinstance(held, Tensor):
                    held[...] = arrays[path]
                else:
                    vars(module)[name] = arrays[path]

    def train(self, mode: bool = True) -> Module:
        """Set `training` here and in every part."""
        for _, module in self.named_modules():
            module.training = mode
        return self

    def eval(self) -> Module:
        """Set the mode in which `Dropout` does nothing and running statistics are used."""
        return self.train(False)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients of all parameters to None, or else to zeros."""
        for parameter in self.parameters():
            parameter.zero_grad(set_to_none)

    def double(self) -> Module:
        """Return the module, whose dtype is always float64."""
        return self

    def to(self, device: Any) -> Module:
        """Put every parameter and buffer on a device, as new leaves: before an optimizer is made.

        Parameters
        ----------
        device : str or module
            As in `Tensor.to`.
        """
        home = device_module(device)
        for owner, name in _places(self).values():
            held = getattr(owner, name)
            leaf = isinstance(held, Tensor)
            data = held.detach().array() if leaf else held
            if module_of(data) is not home:
                moved = sent_to(home, data)
                vars(owner)[name] = tensor(moved, held.requires_grad) if leaf else moved
        return self

    def __repr__(self) -> str:
        parts = "".join(f"\n({name}): {part!r}" for name, part in self.named_children())
        inside = parts.replace("\n", "\n  ") + "\n" if parts else ""
        return f"{type(self).__name__}({inside})"


def functional_call(
    module: Module, parameters: Mapping[str, Any], *args: Any, key: Any = None
) -> Any:
    """Return ``module(*args)`` with parameters and buffers replaced by the given values.

    The module is unchanged afterwards, also statistics that the call updates. In a trace, values
    that are not named are constants.

    Parameters
    ----------
    module : Module
    parameters : mapping of str to array, tensor or traced value
        By the names of `Module.state_dict`; values that are not named are kept.
    *args
        The arguments of the module.
    key : (2,) array, optional
        The key from which layers draw, such as `Dropout`.

    Examples
    --------
    >>> import difflab as dl
    >>> from difflab import nn
    >>> model = nn.Linear(1, 1)
    >>> parameters = {"weight": np.array([[3.0]]), "bias": np.array([1.0])}
    >>> step = dl.jit(lambda p, x: nn.functional_call(model, p, x))
    >>> step(parameters, np.array([[2.0]]))
    array([[7.]])
    """
    _check_names("the module has no parameter", parameters.keys() - _places(module).keys())
    token = _inside.set([key])
    try:
        with _holding(module, parameters, args):
            return module.forward(*args)
    finally:
        _inside.reset(token)


@contextmanager
def _holding(
    module: Module, parameters: Mapping[str, Any] | None, args: tuple[Any, ...]
) -> Iterator[None]:
    """Set values of a module temporarily; in a trace, replace its other tensors by arrays."""
    given = parameters or {}
    traced = any(isinstance(value, Node) for value in (*args, *given.values()))
    places = {} if parameters is None and not traced else _places(module)
    before = {path: getattr(owner, name) for path, (owner, name) in places.items()}
    try:
        for path, (owner, name) in places.items():
            value = given.get(path, before[path])
            vars(owner)[name] = _array(value) if traced and isinstance(value, Tensor) else value
        yield
    finally:
        for path, (owner, name) in places.items():
            vars(owner)[name] = before[path]


def _check_names(what: str, names: Set[Any]) -> None:
    if names:
        raise InputError(f"{what} {', '.join(sorted(map(str, names)))}")


def _places(module: Module, *kinds: str) -> dict[str, tuple[Module, str]]:
    """Return the module and the attribute of every parameter and buffer, by its name."""
    return {
        f"{prefix}.{name}" if prefix else name: (owner, name)
        for kind in kinds or ("_parameters", "_buffers")
        for prefix, owner in module.named_modules()
        for name in vars(owner).get(kind, ())
    }


def _array(value: Any) -> NDArray[Any]:
    """Return a copy of a tensor's or an array's values, on the host."""
    try:
        plain = value.detach() if hasattr(value, "detach") else value
        held = plain.array() if isinstance(plain, Tensor) else plain
        return np.array(on_host(held), dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"a state holds arrays of numbers, not {type(value).__name__}") from None


_eager: list[Any] = [random.key(0)]
"""The key of what is drawn next, outside of `functional_call`."""
_inside: ContextVar[list[Any] | None] = ContextVar("keys of a functional_call", default=None)


def manual_seed(seed: int) -> None:
    """Set the key from which parameters and masks are drawn; it is that of 0 at first.

    Examples
    --------
    >>> from difflab import nn
    >>> nn.manual_seed(1)
    >>> first = nn.Linear(2, 2).weight
    >>> nn.manual_seed(1)
    >>> bool((first == nn.Linear(2, 2).weight).all())
    True
    """
    _eager[0] = random.key(seed)


def next_key(x: Any = None) -> Any:
    """Return a key that is used once, for a layer that computes on `x`."""
    held = _inside.get()
    if held is None or held[0] is None:
        what = "a layer that draws random numbers is traced, and later calls would repeat them"
        _refuse_trace(x, what, ", key=key)")
        held = _eager
    held[0], key = random.split(held[0])
    return key


def require_call(x: Any) -> None:
    """Raise if a layer that changes its statistics is traced outside of `functional_call`."""
    if _inside.get() is None:
        what = "batch normalisation in training mode changes its statistics, which a trace cannot"
        _refuse_trace(x, what, "), which keeps them")


def _refuse_trace(x: Any, what: str, end: str) -> None:
    if isinstance(x, Node):
        instead = f"call model.eval(), or nn.functional_call(model, parameters, x{end}"
        raise at_users_line(TraceError, what, instead)


def save(state: Mapping[str, Any], path: str | Path) -> None:
    """Write a state, such as that of `Module.state_dict`, to a ``.npz`` file.

    The file is written whole, or not at all.
    """
    target, buffer = check_destination(str(path)), BytesIO()
    arrays: dict[str, Any] = {name: _array(value) for name, value in state.items()}
    np.savez(buffer, **arrays)
    write_whole({target: buffer.getvalue()})


def load(path: str | Path) -> State:
    """Return the state in a file that `save` wrote.

    Raises
    ------
    InputError
        It cannot be read, or is no such file.
    """
    try:
        with open_regular(path) as stream, np.load(stream, allow_pickle=False) as held:
            return {name: held[name] for name in held.files}
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {reason(error)}") from error
    except Exception as error:
        raise InputError(f"{str(path)!r} is not a state that nn.save wrote: {error}") from error

"""Policies by name: nothing, everything, matrix products, or values by their names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from difflab.autodiff.engine.argnums import read_until
from difflab.autodiff.policies.naming import require_names
from difflab.autodiff.policies.reversal import is_kept, values_read
from difflab.autodiff.recording import record
from difflab.core.conversions import as_float64
from difflab.errors import InputError
from difflab.graph.checks import require_callable
from difflab.graph.counts import node_arithmetic
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW
from difflab.graph.pytree import flatten, unflatten
from difflab.primitives import matmul, solve

PRODUCTS = frozenset({matmul, solve})


@dataclass(frozen=True)
class Policy:
    """A rule that chooses the values which a checkpointed function keeps.

    Attributes
    ----------
    text : str
        The policy as it is written.
    choose : callable
        From the function, the nodes that are kept.
    """

    text: str
    choose: Callable[[Function], Iterable[int]]

    def kept(self, function: Function) -> list[int]:
        """Return the nodes of a function that are kept, in order."""
        graph = function.graph
        return sorted({node for node in self.choose(function) if is_kept(graph, node)})

    def __repr__(self) -> str:
        return f"<policy {self.text}>"


def _products(function: Function) -> list[int]:
    return np.flatnonzero(function.graph.applies(*PRODUCTS)).tolist()


nothing = Policy("nothing", lambda function: ())
everything = Policy("everything", values_read)
dots = Policy("dots", _products)


def save_only(*names: str) -> Policy:
    """Return the policy that keeps the values with these names alone.

    Parameters
    ----------
    *names : str
        What `dl.name` was called with in the function.

    Raises
    ------
    InputError
        There is none, or a name is not an identifier. By the checkpointed call: it has names, but
        none of these.

    Examples
    --------
    >>> import difflab as dl
    >>> dl.policies.save_only("h", "z")
    <policy save_only('h', 'z')>
    """
    _require_some(names, "save_only")

    def choose(function: Function) -> list[int]:
        labels = function.graph.labels
        found = [node for node, label in labels.items() if label in names]
        if labels and not found:
            known = ", ".join(sorted(set(labels.values())))
            raise InputError(
                f"no value of the checkpointed function is named {' or '.join(names)}",
                hint=f"the names in it are {known}; those inside a loop are not the function's",
            )
        return found

    return Policy(f"save_only{_listed(names)}", choose)


def save_any_except(*names: str) -> Policy:
    """Return the policy that keeps every value that the reverse sweep reads except these.

    Instead of an excluded value, those that it is computed from are kept.

    Examples
    --------
    >>> import difflab as dl
    >>> dl.policies.save_any_except("h")
    <policy save_any_except('h')>
    """
    _require_some(names, "save_any_except")

    def choose(function: Function) -> set[int]:
        graph = function.graph
        excluded = {node for node, label in graph.labels.items() if label in names}
        waiting, found, seen = values_read(function), set[int](), set[int]()
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            if node not in excluded and is_kept(graph, node):
                found.add(node)
            else:
                waiting += graph.arguments(node)
        return found

    return Policy(f"save_any_except{_listed(names)}", choose)


def _listed(names: Sequence[str]) -> str:
    return f"({', '.join(map(repr, names))})"


def _require_some(names: Sequence[Any], what: str) -> None:
    require_names(names, what)
    if not names:
        raise InputError(
            f"{what} needs a name", hint="dl.policies.nothing and dl.policies.everything need none"
        )


def require_policy(policy: Any) -> None:
    """Raise `InputError` unless an argument is a policy."""
    if not isinstance(policy, Policy):
        raise InputError(
            f"a checkpoint policy is needed, not {policy!r}",
            hint="such as dl.policies.dots, dl.policies.save_only('h') or"
            " dl.policies.optimal(bytes=10_000)",
        )


@dataclass(frozen=True)
class Account:
    """The values of a function that a policy keeps, and those that the reverse sweep recomputes.

    Attributes
    ----------
    bytes : int
        Of the kept values, beside the arguments and results.
    operations : int
        The scalar operations that are computed again.
    values : tuple of str
        The operations whose results are kept, with their names.
    """

    bytes: int
    operations: int
    values: tuple[str, ...]


def account(policy: Policy, function: Callable[..., Any], *args: Any) -> Account:
    """Return the values of a call that a policy keeps, and those that it recomputes.

    Parameters
    ----------
    policy : Policy
        The policy.
    function : callable or Function
        What is checkpointed.
    *args : tree
        Its arguments: arrays, tensors or numbers, which give the shapes.

    Raises
    ------
    InputError
        An argument is of the wrong kind.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> layer = lambda W, x: np.sum(np.tanh(dl.name(W @ x, "z")))
    >>> W, x = np.ones((50, 100)), np.ones(100)
    >>> dl.policies.account(dl.policies.save_only("z"), layer, W, x)
    Account(bytes=400, operations=0, values=('matmul z',))
    >>> dl.policies.account(dl.policies.nothing, layer, W, x).operations
    9950
    """
    require_policy(policy)
    traced = recorded(function, args)
    graph, kept = traced.graph, policy.kept(traced)
    labels = graph.labels
    names = [f"{graph.primitive(n)!s} {labels.get(n, '')}".strip() for n in kept]
    again = recomputed(traced, kept)
    operations = sum(node_arithmetic(graph, node) for node in again)
    values = tuple(name.replace("<primitive ", "").replace(">", "") for name in names)
    return Account(sum(kept_bytes(traced, node) for node in kept), operations, values)


def recorded(function: Callable[..., Any], args: Sequence[Any]) -> Function:
    """Return a function as a graph of flat inputs."""
    if isinstance(function, Function):
        return function
    require_callable(function, "a policy")
    leaves, structure = flatten(tuple(args))
    values = [as_float64(getattr(leaf, "_data", leaf), "an argument") for leaf in leaves]
    shapes = [value.shape for value in values]

    def run(nodes: Any) -> Any:
        return function(*unflatten(structure, nodes))

    return record(run, shapes, has_aux=False, values=values).function


def kept_bytes(function: Function, node: int) -> int:
    """Return the bytes of a node's value."""
    return 8 * math.prod(function.graph.shape(node))


def recomputed(function: Function, kept: Sequence[int]) -> list[int]:
    """Return the operations of a function that its reverse sweep computes again."""
    nodes = np.flatnonzero(function.graph.opcode >= FIRST_ROW).tolist()
    read = [node for node in values_read(function) if node not in set(kept)]
    marks = read_until(function.graph, read, kept)
    return [node for node in nodes if marks[node]]

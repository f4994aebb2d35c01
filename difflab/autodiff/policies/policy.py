"""Policies by name: nothing, everything, matrix products, or values by their names.

They choose among the values that the reverse sweep of a function reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from difflab.autodiff.engine.argnums import part_of, pulled, read_until
from difflab.autodiff.recording import record
from difflab.core.conversions import as_float64
from difflab.core.place import at_users_line
from difflab.errors import InputError
from difflab.graph.checks import require_callable
from difflab.graph.counts import node_arithmetic
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW, INPUT, Graph
from difflab.graph.node import Node
from difflab.graph.pytree import flatten, unflatten
from difflab.graph.rewritten import selected
from difflab.primitives import matmul, solve


def name(value: Any, name: str) -> Any:
    """Return `value`, named for checkpoint policies; several values may have one name.

    Parameters
    ----------
    value : tree
        The traced values in it are named. Others, such as arrays, are returned unchanged.
    name : str
        A name as Python's variables have. Graphs that are printed or drawn show it, too.

    Raises
    ------
    InputError
        The name is not an identifier.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> print(dl.trace(lambda x: np.sin(dl.name(x * x, "h")) + x * x, 2.0))
    h = x*x
    sin(h) + h
    """
    require_names([name], "name")
    for leaf in flatten(value)[0]:
        if isinstance(leaf, Node):
            leaf.builder.labels[leaf.id] = name
    return value


def require_names(names: Any, what: str) -> None:
    """Raise `InputError` unless all of some names are identifiers."""
    for each in names:
        if not isinstance(each, str) or not each.isidentifier():
            raise at_users_line(
                InputError,
                f"{what} takes names such as 'h', not {each!r}",
                "a name consists of letters, digits and _, as Python's names do",
            )


def is_kept(graph: Graph, node: int) -> bool:
    """Whether a node's value can be kept; data movement and truth values cannot."""
    row = graph.primitive(node)
    return row is not None and not row.structural and not row.boolean


def with_values(function: Function, nodes: Sequence[int]) -> Function:
    """Return the function with the values of nodes as further outputs."""
    names = [f"kept{k + 1}" for k in range(len(nodes))]
    outputs = [*function.outputs, *nodes]
    return selected(function, outputs, [*function.output_names, *names])


def values_read(function: Function) -> list[int]:
    """Return the values that can be kept and that the reverse sweep reads, in order.

    Operations that only move data, and truth values, are replaced by the values they depend on.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x: [3]; h = sin(x); sum(exp(h) * h[0])")
    >>> [f.graph.primitive(node).name for node in values_read(f)]
    ['sin', 'exp']
    """
    graph = function.graph
    nodes = np.flatnonzero(graph.opcode >= FIRST_ROW).tolist()
    whole = with_values(function, nodes)
    count, sources = len(function.outputs), tuple(range(len(function.inputs)))
    pull = pulled(whole, sources, tuple(range(count)), joins=True)
    number_of = dict(zip(pull.outputs[count:], nodes, strict=False))
    back = pull.outputs[len(whole.outputs) :]
    marks = read_until(pull.graph, back, list(number_of))
    reads = pull.graph.args[np.repeat(marks, np.diff(pull.graph.starts))].tolist()
    waiting = [number_of[node] for node in {*reads, *back} if node in number_of]
    kept: set[int] = set()
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        if is_kept(graph, node):
            kept.add(node)
            continue
        new = {arg for arg in graph.arguments(node) if graph.opcode[arg] >= FIRST_ROW} - seen
        seen |= new
        waiting += new
    return sorted(kept)


def backward_from(
    whole: Function, results: int, sources: Sequence[int], reached: Sequence[int]
) -> Function:
    """Return the cotangents of some inputs, from values that were kept.

    Parameters
    ----------
    whole : Function
        Its first `results` outputs are results, the others values that were kept.
    results : int
        How many.
    sources : sequence of int
        The inputs whose cotangents are returned.
    reached : sequence of int
        The outputs that have cotangents.

    Returns
    -------
    Function
        Its inputs are those of `whole`, the kept values, and the cotangents.
    """
    count, inputs = len(whole.outputs), len(whole.inputs)
    pull = pulled(whole, tuple(sources), tuple(reached), joins=True)
    nodes, back = pull.input_nodes, pull.outputs[count:]
    kept = pull.outputs[results:count]
    names = {node: f"x{k + 1}" for k, node in enumerate(nodes[:inputs])}
    names |= {node: f"kept{k + 1}" for k, node in enumerate(kept)}
    names |= {node: f"bar{k + 1}" for k, node in enumerate(nodes[inputs:])}
    marks = read_until(pull.graph, back, kept) & (pull.graph.opcode != INPUT)
    return part_of(pull, names, marks, back, pull.output_names[count:])


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
        The names passed to `dl.name` in the function.

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
        kept = [node for node, label in labels.items() if label in names]
        if labels and not kept:
            listed = ", ".join(sorted(set(labels.values())))
            raise InputError(
                f"no value of the checkpointed function is named {' or '.join(names)}",
                hint=f"the names in it are {listed}; those inside a loop are not the function's",
            )
        return kept

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
        waiting, kept, seen = values_read(function), set[int](), set[int]()
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            if node not in excluded and is_kept(graph, node):
                kept.add(node)
            else:
                waiting += graph.arguments(node)
        return kept

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
        The function to checkpoint.
    *args : tree
        Its arguments: arrays, tensors or scalars, which give the shapes.

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

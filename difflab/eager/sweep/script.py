"""A pull-back as straight-line Python: it checks a tape's structure and computes its gradients.

The generated function checks without collecting, looking up or looping over steps. Its source
consists of fixed text and numbered names; the objects that the names stand for are its globals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from difflab.eager.recording.tape import Accumulation, TapeStep
from difflab.eager.sweep.pulled import GraphCalculator, GraphValue
from difflab.graph.evaluate import Fold, KernelInterpreter

SweepFunction = Callable[[TapeStep, Any, bool], "list[tuple[Accumulation, Any]] | None"]
"""``(root, seed, keep)``: the leaves with their cotangents; None if the structure differs."""


def sweep_function(
    steps: Sequence[TapeStep],
    leaves: Mapping[Accumulation, GraphValue],
    calculator: GraphCalculator,
) -> SweepFunction:
    """Return the sweep over tapes with the structure of a given tape.

    Parameters
    ----------
    steps : sequence
        The steps of the tape, the root first, in the order of the sweep.
    leaves : mapping
        Its leaves in the order in which the steps reach them, with their cotangents.
    calculator : GraphCalculator
        The graph of the cotangents.
    """
    scope: dict[str, Any] = {"Accumulation": Accumulation}
    graph, bars = calculator.builder.graph().pruned([bar.node for bar in leaves.values()])
    scope["d"] = [None, *calculator.sources[1:]]
    reads = {*graph.args.tolist(), *bars}
    lines = ["def sweep(s0, seed, keep):", *_checks(steps, list(leaves), scope)]
    for k, (node, source) in enumerate(zip(graph.names, calculator.sources, strict=True)):
        if node in reads:
            kept = isinstance(source, tuple)
            where = "s{}.slots[{}]".format(*source) if kept else f"d[{k}]" if k else "seed"
            lines.append(f" v{node} = {where}")
    fold = Fold(graph, bars, KernelInterpreter(calculator.xp))
    results = [f"(a{leaf}, v{node})" for leaf, node in enumerate(bars)]
    lines += [
        *(f" {line}" for line in fold.statements(scope, frees=False)),
        " if not keep:",
        *(f"  s{index}.edges = None; s{index}.slots = ()" for index in range(len(steps))),
        f" return [{', '.join(results)}]",
    ]
    code = compile("\n".join(lines), "<difflab.backward>", "exec", dont_inherit=True)
    exec(code, scope)  # noqa: S102 - the source holds only numbers of steps and slots
    found: SweepFunction = scope["sweep"]
    return found


def _checks(
    steps: Sequence[TapeStep], leaves: Sequence[Accumulation], scope: dict[str, Any]
) -> list[str]:
    """Return the statements that name the steps and leaves, and refuse other structures.

    A plan fixes the active arguments, so an edge is None in all tapes or in none. Steps with
    decreasing numbers are distinct and in the order of the sweep.
    """
    names: dict[Any, str] = {step: f"s{index}" for index, step in enumerate(steps)}
    names |= {leaf: f"a{index}" for index, leaf in enumerate(leaves)}
    known: set[Any] = {steps[0]}
    lines: list[str] = []
    for index, step in enumerate(steps):
        s, edges = f"s{index}", step.edges or ()
        scope[f"p{index}"], scope[f"n{index}"] = step.plan, step.numbers
        refused = [f"{s}.plan is not p{index}", f"{s}.numbers != n{index}"]
        refused += [f"{s}.hooks", f"{s}.retained is not None"]
        if index and step not in (steps[index - 1].edges or ()):
            refused.append(f"s{index - 1}.number < {s}.number")
        lines.append(f" if {' or '.join(refused)}: return")
        targets, refused = [], []
        for position, edge in enumerate(edges):
            if edge is None or edge in known:
                targets.append(f"e{position}")
                refused += [] if edge is None else [f"e{position} is not {names[edge]}"]
                continue
            known.add(edge)
            targets.append(names[edge])
            if isinstance(edge, Accumulation):
                a = names[edge]
                scope[f"d{a}"] = edge.dtype
                refused.append(f"type({a}) is not Accumulation or {a}.dtype is not d{a}")
        lines.append(f" {', '.join(targets)}, = {s}.edges or {s}.check()")
        lines += [f" if {' or '.join(refused)}: return"] if refused else []
    if len(leaves) > 1:
        every = ", ".join(names[leaf] for leaf in leaves)
        lines.append(f" if len({{{every}}}) < {len(leaves)}: return")
    return lines

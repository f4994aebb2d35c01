"""A recorded sweep as straight-line Python: checks the tape's structure, computes its gradients.

One generated function does both, without collecting, looking up or looping over steps. Its source
consists of fixed text and numbered names; the objects that the names stand for are its globals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from difflab.eager.recording.tape import Accumulation, TapeStep
from difflab.eager.sweep.trace import KernelRecorder, RecordedArray

__all__ = ["SweepFunction", "sweep_function"]

SweepFunction = Callable[[TapeStep, Any, bool], "list[tuple[Accumulation, Any]] | None"]
"""``(root, seed, keep)``: the leaves with their cotangents; None if the structure differs."""


def sweep_function(
    steps: Sequence[TapeStep], leaves: dict[Accumulation, RecordedArray], recorder: KernelRecorder
) -> SweepFunction:
    """Return the sweep over tapes with the structure of a given tape.

    Parameters
    ----------
    steps : sequence
        The steps of the tape, the root first, in the order of the sweep.
    leaves : dict
        Its leaves in the order in which the steps reach them, with their cotangents.
    recorder : KernelRecorder
        The kernel calls of the sweep over the tape.
    """
    scope: dict[str, Any] = {"Accumulation": Accumulation}
    results = [bar.name for bar in leaves.values()]
    lines = [
        "def sweep(s0, seed, keep):",
        *_checks(steps, list(leaves), scope),
        *_computation(recorder, results, scope),
        " if not keep:",
        *(f"  s{index}.edges = None; s{index}.slots = ()" for index in range(len(steps))),
        f" return [{', '.join(f'(a{leaf}, {name})' for leaf, name in enumerate(results))}]",
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


def _computation(
    recorder: KernelRecorder, results: Sequence[str], scope: dict[str, Any]
) -> list[str]:
    """Return the statements that read kept values and repeat the calls that `results` need."""
    scope.update(recorder.constants)
    needed = set(results)
    lines: list[str] = []
    for (row, params, operands), result in reversed(recorder.calls.items()):
        if result.name in needed:
            needed.update(operands)
            kernel = f"k{result.name}"
            scope[kernel] = row.unbatched_computer(recorder.xp, params)
            lines.append(f" {result.name} = {kernel}({', '.join(operands)})")
    lines += [
        f" {name} = s{index}.slots[{slot}]"
        for name, (index, slot) in recorder.reads.items()
        if name in needed
    ]
    return lines[::-1]

"""A recorded sweep as straight-line Python: checks the tape's structure, computes its gradients.

One generated function does both, without collecting, looking up or looping over steps. Its source
consists of fixed text and numbered names; the objects that the names stand for are its globals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from difflab.eager.recording.plan import Recipe
from difflab.eager.recording.tape import Accumulation, TapeStep

__all__ = ["SweepFunction", "sweep_function"]

SweepFunction = Callable[[TapeStep, Any, bool], "list[tuple[Accumulation, Any]] | None"]
"""``(root, seed, keep)``: the leaves with their cotangents; None if the structure differs."""


def sweep_function(
    steps: Sequence[TapeStep],
    leaves: Sequence[Accumulation],
    reads: Sequence[tuple[int, int]],
    recipe: Recipe,
    xp: ModuleType,
) -> SweepFunction:
    """Return the sweep over tapes with the structure of a given tape.

    Parameters
    ----------
    steps, leaves : sequence
        The steps (the root first, in the order of the sweep) and leaves of the tape.
    reads : sequence of (int, int)
        The index of a step and the slot that is read, for each input of the recipe after the
        seed.
    recipe : Recipe
        The recorded computation: its results are the cotangents of the leaves.
    xp : module
        The array module whose kernels compute.
    """
    scope: dict[str, Any] = {"Accumulation": Accumulation}
    lines = [
        "def sweep(s0, seed, keep):",
        *_checks(steps, leaves, scope),
        *_computation(reads, recipe, xp, scope),
        " if not keep:",
        *(
            f"  s{index}.edges = None; s{index}.slots = s{index}.guards = ()"
            for index in range(len(steps))
        ),
        f" return [{', '.join(f'(a{leaf}, v{v})' for leaf, v in enumerate(recipe.results))}]",
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
        if step.guards:
            lines.append(f" for memory, changes in {s}.guards:")
            lines.append(f"  if memory.changes != changes: {s}.check()")
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
    reads: Sequence[tuple[int, int]], recipe: Recipe, xp: ModuleType, scope: dict[str, Any]
) -> list[str]:
    """Return the statements that read the kept values and compute."""
    lines = [" v0 = seed"]
    lines += [f" v{v} = s{index}.slots[{slot}]" for v, (index, slot) in enumerate(reads, 1)]
    for v, number in enumerate(recipe.constants, recipe.inputs):
        scope[f"v{v}"] = number
    for v, (row, operands, params) in enumerate(
        recipe.steps, recipe.inputs + len(recipe.constants)
    ):
        scope[f"k{v}"] = row.unbatched_computer(xp, params)
        lines.append(f" v{v} = k{v}({', '.join(f'v{operand}' for operand in operands)})")
    return lines

"""A recorded sweep as straight-line Python: is this such a tape, and if so, its gradients.

One function looks at a tape and goes through it, so that nothing is collected, looked up or looped
over in between. Every name in its source is a number of the recording's; what the names stand for
is handed over beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from difflab.eager.recording.plan import Recipe
from difflab.eager.recording.tape import Accumulation, TapeStep

__all__ = ["SweepFunction", "written"]

SweepFunction = Callable[[TapeStep, Any, bool], "list[tuple[Accumulation, Any]] | None"]
"""``(root, seed, keep)``: the leaves with their cotangents; None where the tape is another one."""


def written(
    steps: Sequence[TapeStep],
    leaves: Sequence[Accumulation],
    reads: Sequence[tuple[int, int]],
    recipe: Recipe,
    xp: ModuleType,
) -> SweepFunction:
    """Return the sweep over tapes that are built like a given one.

    Parameters
    ----------
    steps, leaves : sequence
        The tape: the root first, then in the order of the sweep.
    reads : sequence of (int, int)
        The place of a step, and which of its slots is read, for each of the recipe's inputs
        after the seed.
    recipe : Recipe
        What the sweep computes: its results are the leaves' cotangents.
    xp : module
        Whose kernels compute.
    """
    scope: dict[str, Any] = {"Accumulation": Accumulation}
    lines = [
        "def sweep(s0, seed, keep):",
        *_recognized(steps, leaves, scope),
        *_computed(reads, recipe, xp, scope),
        " if not keep:",
        *(
            f"  s{place}.edges = None; s{place}.slots = s{place}.guards = ()"
            for place in range(len(steps))
        ),
        f" return [{', '.join(f'(a{leaf}, v{v})' for leaf, v in enumerate(recipe.results))}]",
    ]
    code = compile("\n".join(lines), "<difflab.backward>", "exec", dont_inherit=True)
    exec(code, scope)  # noqa: S102 - the source holds numbers of steps and slots alone
    found: SweepFunction = scope["sweep"]
    return found


def _recognized(
    steps: Sequence[TapeStep], leaves: Sequence[Accumulation], scope: dict[str, Any]
) -> list[str]:
    """Return the statements that name the steps and leaves, and turn other tapes away.

    A plan tells which arguments are active, so that where one edge led nowhere, all do. Steps
    whose numbers fall from one to the next are different ones, and come in this order.
    """
    names: dict[Any, str] = {step: f"s{place}" for place, step in enumerate(steps)}
    names |= {leaf: f"a{place}" for place, leaf in enumerate(leaves)}
    known: set[Any] = {steps[0]}
    lines: list[str] = []
    for place, step in enumerate(steps):
        s, edges = f"s{place}", step.edges or ()
        scope[f"p{place}"], scope[f"n{place}"] = step.plan, step.numbers
        refused = [f"{s}.plan is not p{place}", f"{s}.numbers != n{place}"]
        refused += [f"{s}.hooks", f"{s}.retained is not None"]
        if place and step not in (steps[place - 1].edges or ()):
            refused.append(f"s{place - 1}.number < {s}.number")
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


def _computed(
    reads: Sequence[tuple[int, int]], recipe: Recipe, xp: ModuleType, scope: dict[str, Any]
) -> list[str]:
    """Return the statements that read what the steps keep, and compute."""
    lines = [" v0 = seed"]
    lines += [f" v{v} = s{place}.slots[{slot}]" for v, (place, slot) in enumerate(reads, 1)]
    for v, number in enumerate(recipe.constants, recipe.inputs):
        scope[f"v{v}"] = number
    for v, (row, operands, params) in enumerate(
        recipe.steps, recipe.inputs + len(recipe.constants)
    ):
        scope[f"k{v}"] = row.unbatched_computer(xp, params)
        lines.append(f" v{v} = k{v}({', '.join(f'v{operand}' for operand in operands)})")
    return lines

"""Groups of instructions as an LLVM module: ``run(x, y, v, n)``.

x is a table of addresses, y the constants, v the memory of all values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from difflab.execute.targets.llvm.arrays.groups import NestLayout
from difflab.execute.targets.llvm.arrays.routine import Routine
from difflab.execute.targets.llvm.functions import Functions
from difflab.execute.targets.llvm.libraries import Host

__all__ = ["Module"]


class Module:
    """Writes the module: ``run`` and the routines that its control instructions call.

    Parameters
    ----------
    layout : NestLayout
        What is computed.
    host : Host
        What it is written for.
    checked : bool
        Whether every access is compared with the bounds of its value before it is made. One
        outside of them ends the run, and its number in `accesses`, counted from 1, is left
        behind the inputs' addresses.

    Attributes
    ----------
    constants : list of float
        The constants of all routines.
    operations : int
        How many instructions are written.
    """

    def __init__(self, layout: NestLayout, host: Host, *, checked: bool = False) -> None:
        self.layout = layout
        self.host = host
        self.checked = checked
        self.accesses: list[str] = []
        self.constants: list[float] = []
        self.functions = Functions(host)
        self.operations = 0
        self._routines: dict[NestLayout, Routine] = {}

    def memory(self) -> NDArray[np.float64]:
        """Return memory for the values of a call; if checked, what nothing has written is nan."""
        size = self.layout.room + 1
        return np.full(size, np.nan) if self.checked else np.zeros(size)

    def text(self) -> str:
        """Return the module; x is the table of the inputs' addresses, and n means nothing."""
        main = Routine(self, self.layout, "run")
        main.write()
        return self._with(main, self._addresses(self.layout.program.inputs, 0))

    def batch_text(self) -> str:
        """Return the module for n points, whose layout is that of a routine.

        x is the table of the addresses of the inputs and outputs, and then of their steps from
        point to point.
        """
        pointers = range(self.layout.program.inputs)
        main = Routine(self, NestLayout.empty(), "run")
        for counter in main.loop(0, "%n", 1):
            places = [
                main.moved(f"%p{number}", main.assigned(f"mul i64 {counter}, %s{number}"))
                for number in pointers
            ]
            main.call(self.layout, places, "%v")
        steps = []
        for number in pointers:
            steps.append(f"%r{number} = getelementptr i64, ptr %x, i64 {len(pointers) + number}")
            steps.append(f"%s{number} = load i64, ptr %r{number}, align 8")
        return self._with(main, [*self._addresses(len(pointers), len(pointers)), *steps])

    def _addresses(self, count: int, others: int) -> list[str]:
        """Return the lines that read a number of addresses; the fault lies behind them all."""
        lines = [f"%fault = getelementptr i64, ptr %x, i64 {count + others}"]
        for number in range(count):
            lines.append(f"%q{number} = getelementptr ptr, ptr %x, i64 {number}")
            lines.append(f"%p{number} = load ptr, ptr %q{number}, align 8")
        return lines

    def _with(self, main: Routine, loads: Sequence[str]) -> str:
        """Return the module with its main function."""
        bits = max(64 * self.host.width, 128)
        return "\n".join(
            [
                "define void @run(ptr noalias %x, ptr noalias %y, ptr noalias %v, i64 %n) #0 {",
                "start:",
                *main.slots,
                *loads,
                *main.lines,
                "ret void",
                "}",
                *[routine.definition for routine in self._routines.values()],
                *self.functions.texts.values(),
                f'attributes #0 = {{ nounwind "min-legal-vector-width"="{bits}"'
                f' "prefer-vector-width"="{bits}" }}',
            ]
        )

    def routine(self, layout: NestLayout) -> Routine:
        """Return the routine of a function that a control instruction calls."""
        found = self._routines.get(layout)
        if found is None:
            found = Routine(self, layout, f"routine{len(self._routines)}")
            self._routines[layout] = found
            found.write()
        return found

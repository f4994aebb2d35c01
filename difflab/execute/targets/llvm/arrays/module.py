"""Groups of instructions as an LLVM module: ``run(x, y, v, n)``.

x is the table of the inputs' addresses, y the constants, v the memory of all values.
"""

from __future__ import annotations

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

    def text(self) -> str:
        """Return the module."""
        main = Routine(self, self.layout, "run")
        inputs = range(self.layout.program.inputs)
        loads = [f"%fault = getelementptr i64, ptr %x, i64 {len(inputs)}"]
        for number in inputs:
            loads.append(f"%q{number} = getelementptr ptr, ptr %x, i64 {number}")
            loads.append(f"%p{number} = load ptr, ptr %q{number}, align 8")
        main.write()
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

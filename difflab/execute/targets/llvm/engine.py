"""Compiling a module's text, and loading what came of it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from difflab.errors import UnsupportedError
from difflab.execute.targets.llvm import store
from difflab.execute.targets.llvm.libraries import Host, address, llvm

__all__ = ["CompiledModule", "load"]

WELL = 1_000  # operations up to which registers are given out with care, for some 60 µs each
_RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


class CompiledModule:
    """The function ``run(x, y, v, n)`` of a module, which takes addresses.

    The interpreter's lock is released while it runs.
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine  # owns the code
        self.run: Callable[[int, int, int, int], None] = _RUN(engine.get_function_address("run"))


def load(text: str, symbols: Sequence[str], host: Host, operations: int) -> CompiledModule:
    """Return the module's function, compiled now or in an earlier run.

    Parameters
    ----------
    text : str
        The module.
    symbols : sequence of str
        The functions that it takes from libraries.
    host : Host
        What to compile for.
    operations : int
        How many there are: few are optimised well, many are compiled fast.
    """
    from difflab import __version__

    binding = llvm()
    level = 2 if operations <= WELL else 0
    versions = __version__, import_module("llvmlite").__version__
    key = store.key(text, host.cpu, host.features, str(level), *versions)
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=host.cpu, features=host.features, opt=level, codemodel="jitdefault", jit=True
    )
    code = store.read(key)
    if code is None:
        module = binding.parse_assembly(text)
        module.verify()
        code = machine.emit_object(module)
        store.write(key, code)
    for symbol in symbols:
        place = address(symbol)
        if not place:
            raise UnsupportedError(f"no library of this machine has '{symbol}': use target 'numpy'")
        binding.add_symbol(symbol, place)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return CompiledModule(engine)

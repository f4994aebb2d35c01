"""Compilation of LLVM IR, and loading of the machine code."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from difflab.errors import UnsupportedError
from difflab.execute.targets.llvm import store
from difflab.execute.targets.llvm.libraries import Host, address, llvm

__all__ = ["CompiledModule", "load"]

WELL = 1_000  # operations up to which code is optimised, at about 60 µs each
_RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


class CompiledModule:
    """A compiled module with one function, ``run(x, y, v, n)``, called with addresses.

    The GIL is released while it runs.
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine  # owns the code
        self.run: Callable[[int, int, int, int], None] = _RUN(engine.get_function_address("run"))


def load(text: str, symbols: Sequence[str], host: Host, operations: int) -> CompiledModule:
    """Return a compiled module, from the cache if possible.

    Parameters
    ----------
    text : str
        The LLVM IR of the module.
    symbols : sequence of str
        The library functions that it calls.
    host : Host
        The processor to compile for.
    operations : int
        The number of operations: large modules are compiled without optimisation.
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
        location = address(symbol)
        if not location:
            raise UnsupportedError(f"no library of this machine has '{symbol}': use target 'numpy'")
        binding.add_symbol(symbol, location)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return CompiledModule(engine)

"""Compilation of LLVM IR, and loading of the machine code."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from difflab.errors import UnsupportedError
from difflab.execute.targets.llvm import store
from difflab.execute.targets.llvm.libraries import Host, address, llvm

WELL = 1_000  # operations up to which code is optimised, at about 60 µs each
_RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


class CompiledModule:
    """A compiled module with one function, ``run(x, y, v, n)``, called with addresses.

    The GIL is released while it runs.

    Attributes
    ----------
    address : int
        The address of the function, valid as long as the module lives.
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine  # owns the code
        self.address: int = engine.get_function_address("run")
        self.run: Callable[[int, int, int, int], None] = _RUN(self.address)


def load(
    text: str, symbols: Sequence[str], host: Host, operations: int, *, soon: bool = False
) -> CompiledModule:
    """Return a compiled module with a function ``run``; the arguments are those of `linked`."""
    return CompiledModule(linked(text, symbols, host, operations, soon=soon))


def linked(
    text: str,
    symbols: Sequence[str],
    host: Host,
    operations: int,
    *,
    inlined: bool = False,
    soon: bool = False,
) -> Any:
    """Return the engine of a compiled module, which owns its code, from the cache if possible.

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
    inlined : bool
        Whether functions of the module are inlined and its instructions simplified before.
    soon : bool
        Whether it is compiled without optimisation, in a fourth of the time and with the same
        results, unless the cache has optimised code.
    """
    from difflab import __version__

    binding = llvm()
    level = 2 if operations <= WELL else 0

    def stored(level: int) -> tuple[str, bytes | None]:
        versions = __version__, import_module("llvmlite").__version__
        how = f"{level}{' inlined' * inlined}"
        key = store.key(text, host.cpu, host.features, how, *versions)
        return key, store.read(key)

    key, code = stored(level)
    if code is None and soon and level:
        level = 0
        key, code = stored(level)
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=host.cpu, features=host.features, opt=level, codemodel="jitdefault", jit=True
    )
    if code is None:
        module = binding.parse_assembly(text)
        module.verify()
        if inlined:
            options = binding.create_pipeline_tuning_options(speed_level=level)
            builder = binding.create_pass_builder(machine, options)
            builder.getModulePassManager().run(module, builder)
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
    return engine

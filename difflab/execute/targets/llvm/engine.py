"""Compilation of LLVM IR, loading of the machine code, and its cache on disk."""

from __future__ import annotations

import ctypes
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from difflab.core.system import open_regular
from difflab.errors import InputError, UnsupportedError
from difflab.execute.targets.llvm.libraries import Host, address, llvm

# --- the disk cache ------------------------------------------------------------------------------
# The folder is ``$DIFFLAB_CACHE``, else ``difflab`` in ``$XDG_CACHE_HOME`` or ``~/.cache``;
# ``DIFFLAB_CACHE=off`` disables the cache. An entry is written to a temporary file and renamed, so
# that a reader sees all of it or nothing. It begins with its checksum: a damaged entry is compiled
# again. A folder that other users can write to is not used, since its code would be executed.

LARGEST = 256 << 20  # bytes of all entries together
ENTRIES = 4096
_DIGEST = hashlib.sha256().digest_size
_ENDING = ".code"


def folder() -> Path | None:
    """Return the folder of the cache, or None if the cache is disabled."""
    chosen = os.environ.get("DIFFLAB_CACHE", "")
    if chosen.lower() in ("off", "0", "no", "none"):
        return None
    if chosen:
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(home) if Path(home).is_absolute() else Path.home() / ".cache") / "difflab"
    except RuntimeError:  # no home
        return None


def entry_name(*facts: str) -> str:
    """Return the name of an entry: a digest of everything that its code depends on.

    Examples
    --------
    >>> entry_name("a", "bc") == entry_name("ab", "c")
    False
    """
    digest = hashlib.sha256()
    for fact in facts:
        data = fact.encode()
        digest.update(f"{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()


def read_entry(name: str) -> bytes | None:
    """Return an entry's code; None if it is missing, damaged or not trusted."""
    directory = folder()
    if directory is None or not _private(directory):
        return None
    path = directory / (name + _ENDING)
    try:
        with open_regular(path) as file:
            data = file.read()
        if _checksum(name, data[_DIGEST:]) != data[:_DIGEST]:
            return None
        os.utime(path)  # for eviction of the least recently used
    except (OSError, InputError):
        return None
    return data[_DIGEST:]


def write_entry(name: str, code: bytes) -> None:
    """Write an entry; if that fails, the code is compiled again the next time."""
    directory = folder()
    if directory is None:
        return
    with suppress(OSError):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _private(directory):
            return
        handle, name_beside = tempfile.mkstemp(dir=directory, suffix=".part")
        beside = Path(name_beside)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_checksum(name, code) + code)
            beside.replace(directory / (name + _ENDING))
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise
        _trim(directory)


def _checksum(name: str, code: bytes) -> bytes:
    """Return the checksum of an entry's name and code; the name detects copies of other entries."""
    return hashlib.sha256(name.encode() + code).digest()


def _private(directory: Path) -> bool:
    """Return whether only this user can write to the folder."""
    try:
        facts = directory.stat()
    except OSError:
        return False
    if not hasattr(os, "geteuid"):
        return True
    return facts.st_uid == os.geteuid() and not facts.st_mode & 0o022


def _trim(directory: Path) -> None:
    """Remove the least recently used entries until the cache is within its limits."""
    entries = sorted(_entries(directory), reverse=True)
    total = 0
    for number, (_, size, path) in enumerate(entries):
        total += size
        if number >= ENTRIES or (number and total > LARGEST):
            with suppress(OSError):
                path.unlink()


def _entries(directory: Path) -> Iterator[tuple[float, int, Path]]:
    """Yield the time of last use, the size and the path of each file."""
    with os.scandir(directory) as files:
        for file in files:
            if file.name.endswith((_ENDING, ".part")):
                with suppress(OSError):
                    facts = file.stat()
                    yield facts.st_mtime, facts.st_size, Path(file.path)


# --- compilation ---------------------------------------------------------------------------------

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
    level = _level(operations)
    code = read_entry(_entry(text, host, level, inlined=inlined)) if soon and level else None
    if soon and code is None:
        level = 0
    machine = _machine(host, level)
    code = code or _emitted(text, host, level, machine, inlined=inlined)
    return _joined([code], symbols, machine)


def load_parts(
    texts: Iterable[str], symbols: Callable[[], Sequence[str]], host: Host, operations: int
) -> CompiledModule:
    """Return modules that call one another as one, of which the last one has the function ``run``.

    Each is compiled before the next text is asked for, and `symbols` is called at the end: LLVM
    takes a kilobyte for each operation of a module.
    """
    level = _level(operations)
    machine = _machine(host, level)
    codes = [_emitted(text, host, level, machine) for text in texts]
    return CompiledModule(_joined(codes, symbols(), machine))


def _level(operations: int) -> int:
    return 2 if operations <= WELL else 0


def _entry(text: str, host: Host, level: int, *, inlined: bool) -> str:
    """Return the name of a module's entry in the cache."""
    from difflab import __version__

    versions = __version__, import_module("llvmlite").__version__
    return entry_name(text, host.cpu, host.features, f"{level}{' inlined' * inlined}", *versions)


def _machine(host: Host, level: int) -> Any:
    create = llvm().Target.from_default_triple().create_target_machine
    return create(cpu=host.cpu, features=host.features, opt=level, codemodel="jitdefault", jit=True)


def _emitted(text: str, host: Host, level: int, machine: Any, *, inlined: bool = False) -> bytes:
    """Return the machine code of a module, from the cache if possible."""
    key = _entry(text, host, level, inlined=inlined)
    code = read_entry(key)
    if code is None:
        binding = llvm()
        module = binding.parse_assembly(text)
        module.verify()
        if inlined:
            options = binding.create_pipeline_tuning_options(speed_level=level)
            builder = binding.create_pass_builder(machine, options)
            builder.getModulePassManager().run(module, builder)
        code = machine.emit_object(module)
        write_entry(key, code)
    return code


def _joined(codes: Sequence[bytes], symbols: Sequence[str], machine: Any) -> Any:
    """Return the engine of modules, which owns their code."""
    binding = llvm()
    for symbol in symbols:
        location = address(symbol)
        if not location:
            raise UnsupportedError(f"no library of this machine has '{symbol}': use target 'numpy'")
        binding.add_symbol(symbol, location)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    for code in codes:
        engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine

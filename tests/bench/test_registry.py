"""Every benchmark of the registry has a subcommand and what that needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from difflab.bench.registry import BENCHMARKS, load
from difflab.cli.bench.commands import bench


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_row_loads_a_module_with_columns_tasks_and_a_picture(name: str) -> None:
    module = load(name)
    assert set(module.LAYOUT.key) < set(module.LAYOUT.columns)
    assert callable(module.tasks)
    assert callable(module.draw)


def test_the_subcommands_are_the_rows() -> None:
    commands = {command.name: command.help for command in bench.registered_commands}
    for name, summary in BENCHMARKS.items():
        assert commands[name] == summary


def test_the_registry_and_the_help_load_neither_numpy_nor_matplotlib() -> None:
    code = "import sys, difflab.cli.app; print({'numpy', 'matplotlib', 'sympy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"

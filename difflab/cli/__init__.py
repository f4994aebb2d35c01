"""The command `difflab`: arguments to calls, results to the terminal, errors to exit codes.

No mathematics here: every command calls a floor below. Importing this package loads typer and
nothing heavier; a command imports what it needs when it runs.
"""

from difflab.cli.app import main

__all__ = ["main"]

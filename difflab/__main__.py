"""``python -m difflab``: the command `difflab`. Imports only `difflab.cli`."""

from difflab.cli import main

if __name__ == "__main__":
    main()

"""``python -m difflab``: the command `difflab`."""

from difflab.cli import main

if __name__ == "__main__":
    main()

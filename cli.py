"""The command `difflab` from a bare checkout: ``python cli.py compare "sin(x)"``."""

from difflab.cli import main

if __name__ == "__main__":
    main()

"""Seconds to parse a million tokens: ``python tests/language/bench_parse.py``. Not a test."""

from __future__ import annotations

import time

from difflab.language import parse
from difflab.language.lexer import tokens


def report(label: str, text: str) -> None:
    """Print how long `text` takes."""
    count = sum(1 for _ in tokens(text))
    start = time.process_time()
    function = parse(text)
    seconds = time.process_time() - start
    nodes = len(function.graph)
    print(f"{label:24} {count:>9,} tokens {seconds:6.2f} s {nodes:>9,} nodes")


if __name__ == "__main__":
    for size in (36_000, 72_000, 143_000):
        report("distinct terms", "+".join(f"sin(x{i})*{i}.5" for i in range(size)))
    report("repeated terms", "+".join(f"x{i % 7}*{i % 13}" for i in range(250_000)))
    report("one long sum", "+".join(["x"] * 500_000))
    report("nested parentheses", "(" * 500_000 + "x" + ")" * 500_000)

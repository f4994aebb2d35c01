"""GradBench's tool: difflab's answers to the evals of GradBench, over its protocol.

``python -m benchmarks gradbench-tool`` reads a message per line from standard input and writes a
response per line to standard output. Every eval is a module of its name, a worked example of the
public API: ``FUNCTIONS`` maps the name of a function to a callable that prepares it for an input.
`repeats` is the one place that prepares, repeats and times.

References
----------
https://github.com/gradbench/gradbench, CONTRIBUTING.md, section "Protocol", and ``evals/``.
"""

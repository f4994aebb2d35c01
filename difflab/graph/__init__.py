"""The computational graph: representation, evaluation, tracing, passes, repetition, drawing.

May import `arrays`, `primitives`, `core` and `errors`.
"""

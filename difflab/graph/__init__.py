"""The computational graph: representation, evaluation, tracing, counts and drawing.

May import `primitives`, `core` and `errors`.
"""

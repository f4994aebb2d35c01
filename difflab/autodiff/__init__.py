"""Automatic differentiation, graph to graph: sweeps and the transforms made of them.

May import `graph`, `primitives`, `core`, `errors`.
"""

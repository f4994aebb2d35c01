"""Symbolic differentiation by SymPy, in a process of its own."""

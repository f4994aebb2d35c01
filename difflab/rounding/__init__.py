"""Rounding errors of a graph: their origins, their effects, and the dtypes that suffice.

`local` bounds the error of one operation, `sweeps` how much that moves the results, and `budget`
adds it up; `proof` compares it with ball arithmetic, `advice` says what to rewrite. `dtypes`
searches for the cheapest dtypes within a tolerance, and `assignment` evaluates and prints them.
"""

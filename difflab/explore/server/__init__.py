"""The page of `difflab.explore` with the formula editable, for one person or a class.

Every request is computed in a process of its own, with limits of time and memory; the server keeps
nothing between requests, sets no cookie and evaluates no text but as a formula.
"""

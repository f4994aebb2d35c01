"""The lab: problems, points, the referee, verdicts, measurements and comparisons.

Import from its modules; this package exports nothing, so using one module loads no other.
"""

"""The lab: problems, points, the referee, verdicts, measurements and comparisons.

Import from its modules; this one names nothing, so that using one part loads no other.
"""

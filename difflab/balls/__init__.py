"""Ball arithmetic: functions and their derivatives with proved bounds, by FLINT.

A *ball* is a midpoint with a proved radius (Arb; F. Johansson, IEEE Trans. Computers 66, 2017).
A graph is evaluated over truncated Taylor expansions whose coefficients are balls. The expansions
of the elementary functions are FLINT's, so that no derivative rule of difflab is used.
"""

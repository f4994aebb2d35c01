"""Counterparts of NumPy's array functions: compositions of rows, with NumPy's signatures.

Each module has a mapping ``FUNCTIONS`` from NumPy's names. Parameters that are left out (`out`,
`where`, `dtype`) are refused with the name of the function.
"""

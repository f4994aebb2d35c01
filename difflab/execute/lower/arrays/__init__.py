"""Array programs at one point: straight-line source over NumPy and BLAS, generated once.

`lowering` is a recorder of a schedule's kernels that knows the shapes of all values; `layout`
assigns buffers, and `source` writes the code and calls it.
"""

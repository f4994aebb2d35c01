"""Array programs at one point: straight-line source over NumPy and BLAS, generated once.

`lowering` is a recorder of a schedule's kernels that knows the shapes of all values; `tidy` drops
and contracts operations, `layout` assigns buffers, `source` writes the code, and `point` calls it.
"""

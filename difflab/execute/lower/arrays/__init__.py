"""Array programs at one point: straight-line source over NumPy and BLAS, made once.

`lowering` notes what a schedule's kernels do to `values` of which only the shapes are known, as
`ops`; `tidy` drops and contracts, `layout` gives buffers, `source` writes the code, and `point`
calls it.
"""

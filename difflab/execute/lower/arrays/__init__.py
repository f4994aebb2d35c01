"""Array programs at one point: straight-line source over NumPy and BLAS, generated once.

`lowering` runs a schedule's kernels on `values` with known shapes only, and records the `ops`;
`tidy` drops and contracts ops, `layout` assigns buffers, `source` writes the code, and `point`
calls it.
"""

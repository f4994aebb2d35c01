"""`Tensor`: its operators, indexing, in-place changes, and construction."""

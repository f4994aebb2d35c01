"""`Tensor`: its operators, indexing, changes in place, and construction."""

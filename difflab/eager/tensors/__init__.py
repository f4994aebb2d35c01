"""`Tensor`: its operators, its indexing, changes in place, and how users make one."""

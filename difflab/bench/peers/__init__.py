"""difflab compared with other packages: the same work, checked results, ratios of times."""

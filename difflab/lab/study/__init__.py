"""Studies: grids of comparisons whose records are kept in one SQLite file."""

"""The static site of a study: one page of all records, and one for each comparison."""

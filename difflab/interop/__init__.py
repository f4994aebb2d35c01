"""Functions on data and programs of other libraries."""

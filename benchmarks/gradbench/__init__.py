"""GradBench's evals, answered by difflab and by the tools of a checkout, one row a function."""

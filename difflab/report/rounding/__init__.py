"""Reports of error budgets and of assignments of dtypes: tables, pages, CSV and pictures."""

"""Loop nests: the form to which array operations are lowered before code is written or printed."""

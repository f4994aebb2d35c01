"""`jit`: Python functions that are traced and compiled when they are called."""

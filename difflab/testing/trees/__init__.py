"""Trees of arguments of every framework, as vectors of numbers, and functions of them."""

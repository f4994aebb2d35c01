"""Trees of arguments of every framework, as flat vectors, and functions of them."""

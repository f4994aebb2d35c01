"""Parts of generated and printed code: loop nests, and kernels as basic rows."""

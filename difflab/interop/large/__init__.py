"""Large data: a compiled function at more points than memory holds.

`chunks` has `apply`, which reads, computes and writes chunks of points on several threads.
`formats` has a file for each format of points and results, and `unfinished` what an interrupted
run leaves to the next.
"""

from difflab.interop.large.chunks import apply

__all__ = ["apply"]

"""Pages on which a derivative is followed step by step, and their server.

`shown` makes the page of a function: one file, which computes with the JavaScript that difflab
prints. What it consists of lies in ``assets/``, as it is sent.
"""

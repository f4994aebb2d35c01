"""Cost of Jacobians against the sizes of the user's own family of functions.

`winners` fits power laws and compares preparation with calls; `bench` has the columns and tasks,
and measures all methods at one size; `drawing` has the picture and the page.
"""

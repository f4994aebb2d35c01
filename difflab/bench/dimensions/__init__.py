"""Cost of Jacobians against the sizes of the user's own family of functions.

`fits` are power laws, `winners` compares preparation with calls; `bench` has the columns and tasks,
and measures all methods at one size.
"""

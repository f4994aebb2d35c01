"""Cost of Jacobians against the sizes of the user's own family of functions.

`families` makes functions from sizes, `measuring` measures all methods at one size, `fits` are
power laws, `winners` compares preparation with calls; `bench` has the columns, tasks and picture.
"""

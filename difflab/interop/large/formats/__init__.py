"""Formats of points and results, one file each; `registry` chooses by the ending of a name."""

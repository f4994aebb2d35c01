"""Checks of many components along a few lines, and the search for the wrong one."""

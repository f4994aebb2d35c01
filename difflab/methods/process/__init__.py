"""Separate processes for methods, which can be stopped whatever the methods are doing."""

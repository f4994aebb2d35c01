"""Processes of their own for methods, which can be stopped whatever the methods are doing."""

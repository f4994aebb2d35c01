"""Evaluation traces: a function and its derivative, one elementary step at a time."""

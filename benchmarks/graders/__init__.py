"""Gradient checkers compared: one corpus of right and wrong gradients, put to every checker."""

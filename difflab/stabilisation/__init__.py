"""Stabilisation: rules that rewrite what overflows or cancels, and their proof by values."""

"""Numeric differentiation from values alone: differences and the complex step."""

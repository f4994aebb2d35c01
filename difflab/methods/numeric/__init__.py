"""Numeric differentiation from function values alone: finite differences and complex step."""

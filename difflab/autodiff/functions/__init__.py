"""Derivatives of Functions, as Functions."""

"""Slopes and noise from values along lines, with error bars."""

"""Comparisons over a domain: every method at many points, judged, and a search for the worst."""

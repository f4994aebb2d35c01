"""Differences between two sets of records: what became wrong, less accurate or slower."""

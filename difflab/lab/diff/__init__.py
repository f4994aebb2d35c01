"""Differences between two sets of records: new errors, lost accuracy, slowdowns."""

"""Checkpoints: values computed again in the reverse sweep instead of being kept."""

"""Checkpoints: values recomputed in the reverse sweep instead of being kept."""

"""The tape: operations are computed, and recorded with the values their derivatives need."""

"""The tape: operations are computed, and recorded with what their derivatives need."""

"""The referee: derivatives from high-precision values alone, errors in ULPs, and verdicts."""

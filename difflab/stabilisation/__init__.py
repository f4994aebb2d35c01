"""Stabilisation: rules that rewrite expressions that overflow or cancel, and numerical proofs."""

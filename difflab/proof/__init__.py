"""Proofs: enclosures of functions and their derivatives on boxes."""

from difflab.proof.bounds import enclose

__all__ = ["enclose"]

"""Proofs: enclosures of functions and their derivatives on boxes, and certificates of graphs."""

from difflab.proof.bounds import enclose
from difflab.proof.certificate import Certificate
from difflab.proof.proving import prove

__all__ = ["Certificate", "enclose", "prove"]

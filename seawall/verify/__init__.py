"""Levels, proofs, recovery points: what is known about a copy, and how."""

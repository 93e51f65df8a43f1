"""Drills: faults put in on purpose, and what the checks made of them."""

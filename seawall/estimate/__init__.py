"""Arithmetic before anything moves: sizes, rates and times. Pure."""

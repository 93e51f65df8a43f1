"""Verbs that move copies: plan, seal, commit, restore."""

"""Pickles read without being run: a machine that builds inert nodes, and judgement about the names they would import."""

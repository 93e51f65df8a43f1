"""Reports on what was proved of an interval's checkpoints: the same bytes whenever they are made."""

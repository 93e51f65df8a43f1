"""What training wrote: layouts, structure, completeness. Nothing in this room executes what a checkpoint contains."""

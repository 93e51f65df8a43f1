"""One file a layout. Each judges a folder (or a sub-folder of one) and adds to the inspection what it finds."""

"""What a sealing is: envelope, tail, manifest, Merkle tree, keys, trust. Formats and arithmetic; no policy about I/O."""

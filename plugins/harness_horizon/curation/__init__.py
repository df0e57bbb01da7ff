"""From raw reviews and metadata to histories and splits, out of core."""

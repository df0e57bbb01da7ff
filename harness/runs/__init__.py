"""The run folder on disk: manifest, journals, lock, atomic files."""

"""What is kept of a run: its folder, manifest, journals, scores and summaries."""

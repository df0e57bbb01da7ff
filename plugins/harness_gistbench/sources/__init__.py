"""Where engagements come from: one module for each published layout, and one for plain files."""

from harness_gistbench.sources.load import load

__all__ = ["load"]

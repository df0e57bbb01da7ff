"""Where questions come from: the published files, or groups as they were recorded."""

from harness_perrecbench.data.load import load

__all__ = ["load"]

"""The analyses of PerRecBench, each imported at first use."""

"""PerRecBench: whose preference for an item is stronger, free of rating bias and item quality."""

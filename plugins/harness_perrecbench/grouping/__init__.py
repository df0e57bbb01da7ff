"""Tools for review logs: one builds groups in the published layout, one describes them."""

"""HORIZON: what people buy next, over years and across all kinds of products."""

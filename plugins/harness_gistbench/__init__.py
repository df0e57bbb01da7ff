"""GISTBench: interests that are grounded in evidence, and specific enough to find it again."""

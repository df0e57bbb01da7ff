"""Errors, hashes, redaction of keys, seeded random choices and bundled files."""

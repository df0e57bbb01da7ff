"""Errors, hashes, redaction of keys, seeded random choices, bundled files: no other room is needed."""

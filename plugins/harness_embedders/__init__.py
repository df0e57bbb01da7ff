"""Embedders: hashed words, sentence-transformers, and servers that speak the OpenAI protocol."""

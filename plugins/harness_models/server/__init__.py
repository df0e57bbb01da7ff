"""Model servers that the harness starts, uses and stops."""

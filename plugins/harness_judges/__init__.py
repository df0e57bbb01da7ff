"""The judges that come with the harness: a model with the benchmark's prompt, and word overlap."""

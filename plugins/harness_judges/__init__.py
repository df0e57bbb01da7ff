"""The judges that come with the harness: a model, a panel of judges, and word overlap."""

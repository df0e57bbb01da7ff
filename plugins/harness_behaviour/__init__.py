"""The benchmark of user behaviour prediction as a test of generalisation."""

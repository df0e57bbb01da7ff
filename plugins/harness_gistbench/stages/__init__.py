"""The stages of the method."""

"""Views of finished runs."""

"""Views on stored runs, each imported when it is asked for."""

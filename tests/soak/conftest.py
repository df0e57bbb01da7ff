"""The fixtures of the integration tests, for runs that take longer than a test may."""

from integration.conftest import gist, harness, serve  # noqa: F401

"""Prompt templates: files that become the messages of a request."""

from harness.prompts.templates import Template, Templates

__all__ = ["Template", "Templates"]

"""The headers of a request, as the official client would send them."""

from __future__ import annotations

import os
from importlib.metadata import version

NAMED = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}


def headers_with(key: str) -> dict[str, str]:
    """The official client's headers, without those that describe the user's machine."""
    environment = os.environ
    return {
        "Accept": "application/json",
        "Content-Type": "application/json",
        "User-Agent": f"AsyncOpenAI/Python {version('openai')}",
        **{name: environment[given] for name, given in NAMED.items() if given in environment},
        **_custom(environment.get("OPENAI_CUSTOM_HEADERS", "")),
        "Authorization": f"Bearer {key}",
    }


def azure_headers_with(key: str) -> dict[str, str]:
    """The same for Azure, which takes its key under a name of its own."""
    headers = headers_with(key)
    del headers["Authorization"]
    return {**headers, "api-key": key}


def _custom(lines: str) -> dict[str, str]:
    """What stands as `Name: value`, one a line."""
    pairs = (line.partition(":") for line in lines.split("\n"))
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}

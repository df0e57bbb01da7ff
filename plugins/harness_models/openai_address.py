"""Where an `openai` model is asked: OpenAI's own servers, any compatible one, or Azure's."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from harness_models.openai_args import OpenAIArgs

BASE_URL_ENV = "OPENAI_BASE_URL"
DEFAULT_HOST = "api.openai.com"
PATHS = {"chat": "chat/completions", "completions": "completions"}


def url_of(args: OpenAIArgs) -> str:
    """The address that requests go to."""
    base, path = base_url_of(args).rstrip("/"), PATHS[args.endpoint]
    if args.azure_endpoint is None:
        return f"{base}/{path}"
    if args.api_version is None:
        return f"{base}/openai/v1/{path}"
    deployment = quote(args.azure_deployment or args.model, safe="")
    version = quote(args.api_version, safe="")
    return f"{base}/openai/deployments/{deployment}/{path}?api-version={version}"


def models_url_of(args: OpenAIArgs) -> str:
    """The address at which a server lists its models."""
    base = base_url_of(args).rstrip("/")
    if args.azure_endpoint is None:
        return f"{base}/models"
    if args.api_version is None:
        return f"{base}/openai/v1/models"
    return f"{base}/openai/models?api-version={quote(args.api_version, safe='')}"


def base_url_of(args: OpenAIArgs) -> str:
    """Where the server stands: as it was given, or as the official client would find it."""
    given = args.azure_endpoint or args.base_url
    return given or os.environ.get(BASE_URL_ENV) or f"https://{DEFAULT_HOST}/v1"


def address_of(args: OpenAIArgs) -> str:
    """The base URL as it may be shown: without credentials and query."""
    parts = urlsplit(base_url_of(args))
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"


def host_of(args: OpenAIArgs) -> str:
    """Host, and port where one is named."""
    parts = urlsplit(base_url_of(args))
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)

"""The batch service of OpenAI and compatible servers, through the official client."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import openai
from openai.types import Batch

from harness.base.errors import ModelError
from harness_models.openai_args import (
    AZURE_TOKEN_ENV,
    NAME_KEY,
    NO_KEY,
    OpenAIArgs,
    address_of,
    base_url_of,
)
from harness_models.openai_screen import Screen, custom_headers
from harness_models.openai_wire import LARGEST_BODY, NAMED, headers_with, pointing, short

ENDED = ("completed", "failed", "expired", "cancelled")
SHOWN_ERRORS = 3
AZURE = "https://cognitiveservices.azure.com/.default"

Token = Callable[[], str]


class NoAnswer(ModelError):
    """The service did not answer, or could not: it may do so later."""


class BatchStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a batch in the service's words; `problem` is why all of it was refused, and
    `code` the service's word for the first such reason."""

    state: str
    ended: bool
    done: int = 0
    failed: int = 0
    problem: str | None = None
    code: str | None = None


class OpenAIBatches:
    """Files and batches at the address of a model's arguments, with its key or Azure's token."""

    def __init__(
        self,
        args: OpenAIArgs,
        key: str | None,
        token: Token | None,
        screen: Screen,
        *,
        trusted: bool = True,
    ) -> None:
        self._args = args
        self._screen = screen
        self._client = client_of(args, key, token, trusted=trusted)
        place = args.api_key_file or args.api_key_env
        look = f"check the key in {place}" if place else NAME_KEY
        self._hints = {401: look, 403: look, 404: "check whether this server supports batches"}

    def upload(self, path: Path) -> str:
        """The id of the uploaded file."""
        with self._explained("the upload"), path.open("rb") as file:
            return self._client.files.create(file=(path.name, file), purpose="batch").id

    def create(self, file_id: str, endpoint: str) -> str:
        """The id of a new batch, which is answered within a day."""
        with self._explained("the batch"):
            if self._args.azure_endpoint is not None:  # Azure needs the file processed first
                self._client.files.wait_for_processing(file_id)
            # Without retries: a batch that is sent twice may be billed twice.
            batches: Any = self._client.with_options(max_retries=0).batches
            batch = batches.create(
                input_file_id=file_id, endpoint=endpoint, completion_window="24h"
            )
            return str(batch.id)

    def find(self, file_id: str) -> str | None:
        """The id of the batch that was made from a file; None if the service lists none."""
        with self._explained("the list of batches"):
            batches = self._client.batches.list(limit=100)
            return next((one.id for one in batches if one.input_file_id == file_id), None)

    def status(self, batch_id: str) -> BatchStatus:
        """The state, counts and problem of a batch."""
        batch = self._batch(batch_id)
        counts = batch.request_counts
        errors = (batch.errors and batch.errors.data) or []
        refused = [
            f"line {one.line}: {one.message}" if one.line else str(one.message) for one in errors
        ]
        return BatchStatus(
            state=batch.status,
            ended=batch.status in ENDED,
            done=counts.completed if counts else 0,
            failed=counts.failed if counts else 0,
            problem=short("; ".join(refused[:SHOWN_ERRORS]), self._screen) or None,
            code=errors[0].code if errors else None,
        )

    def answers(self, batch_id: str) -> Iterator[bytes]:
        """The contents of the output file and the error file, if they exist."""
        batch = self._batch(batch_id)
        for file_id in (batch.output_file_id, batch.error_file_id):
            if file_id:
                with self._explained("the answers"):
                    yield from self._lines(file_id)

    def _lines(self, file_id: str) -> Iterator[bytes]:
        """The lines of a file without secrets, each with an end; ModelError for one too long."""
        held = b""
        for part in self._parts(file_id):
            *lines, held = (held + part).split(b"\n")
            yield from map(self._screened, lines)
            if len(held) > LARGEST_BODY:
                raise ModelError(
                    "a batch's answer is too long",
                    where=address_of(self._args),
                    found=f"a line of more than {LARGEST_BODY:,} bytes",
                )
        yield self._screened(held)  # a file's last line may have no end

    def _parts(self, file_id: str) -> Iterator[bytes]:
        with self._client.files.with_streaming_response.content(file_id) as response:
            try:
                yield from response.iter_bytes()
            except Exception as error:  # of the HTTP client, which the official one passes on
                raise openai.OpenAIError("the file was cut") from error

    def _screened(self, line: bytes) -> bytes:
        text = line.decode("utf-8", "surrogateescape")
        return self._screen.line(text).encode("utf-8", "surrogateescape") + b"\n"

    def _batch(self, batch_id: str) -> Batch:
        with self._explained("the batch"):
            return self._client.batches.retrieve(batch_id)

    @contextmanager
    def _explained(self, wanted: str) -> Iterator[None]:
        """Raise the client's errors as ModelError; `wanted` names the operation's object."""
        try:
            yield
        except openai.APIStatusError as error:
            if 300 <= error.status_code < 400:
                said: object = f"{pointing(error.response.headers)}, and no redirect is followed"
            else:
                said = error.body.get("message") if isinstance(error.body, dict) else None
            detail = short(said or error.response.text, self._screen)
            kind = NoAnswer if error.status_code >= 500 or error.status_code == 429 else ModelError
            raise kind(
                f"the batch service refuses {wanted}",
                where=address_of(self._args),
                found=f"HTTP {error.status_code}: {detail}",
                hint=self._hints.get(error.status_code),
            ) from None
        except openai.OpenAIError as error:
            raise NoAnswer(
                f"the batch service did not answer about {wanted}",
                where=address_of(self._args),
                found=short(error.__cause__ or error, self._screen),
                hint="repeat the command: nothing is submitted twice",
            ) from None


def client_of(
    args: OpenAIArgs, key: str | None, token: Token | None, *, trusted: bool
) -> openai.OpenAI:
    """The official client; it takes organisation, project and headers from the environment.

    Only a `trusted` host gets these.
    """
    kept = () if trusted else (*NAMED, *custom_headers())
    headers: dict[str, Any] = dict.fromkeys(kept, openai.Omit())
    headers["User-Agent"] = headers_with("", trusted=trusted)["User-Agent"]
    base = base_url_of(args).rstrip("/")
    http = openai.DefaultHttpxClient(follow_redirects=False)
    if args.api_version is not None:
        return openai.AzureOpenAI(
            azure_endpoint=base, api_version=args.api_version,
            api_key=None if token else key or NO_KEY,
            azure_ad_token_provider=token, default_headers=headers, http_client=http,
        )  # fmt: skip
    if args.azure_endpoint is not None:
        headers |= {"api-key": key} if key else {}
        base = f"{base}/openai/v1"
    return openai.OpenAI(
        base_url=base,
        api_key=key or token or NO_KEY,
        default_headers=headers,
        http_client=http,
    )


def azure_token() -> Token | None:
    """A function that returns a token for Azure; None without a token and azure-identity."""
    given = os.environ.get(AZURE_TOKEN_ENV, "").strip()
    if given:
        return lambda: given
    try:
        from azure.identity import DefaultAzureCredential, get_bearer_token_provider
    except ImportError:
        return None
    provider = get_bearer_token_provider(DefaultAzureCredential(), AZURE)

    def token() -> str:
        try:
            return str(provider())
        except Exception as error:
            raise ModelError(
                "Azure gave no token", found=str(error), hint="log in with `az login`"
            ) from None

    return token

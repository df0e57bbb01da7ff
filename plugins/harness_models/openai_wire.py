"""Requests to and responses from an OpenAI-compatible server, as pure functions."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from itertools import zip_longest
from typing import Any
from urllib.parse import urlsplit

import msgspec

from harness.contracts.model import CallError, Finish, Message, Reply, TokenLogprob, Usage
from harness_models.openai_screen import NO_SCREEN, Screen, custom_headers

DISTRIBUTION = "user-understanding-harness"
NAMED = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}

OVERFLOW = re.compile(
    r"maximum context length|context[ _]length|context window|context size|context limit"
    r"|maximum model length|max_model_len|prompt is too long|input is too long|too many tokens"
    r"|maximum (input|prompt) length|max_new_tokens. must be <=",
    re.IGNORECASE,
)
OVERFLOW_CODES = ("context_length_exceeded", "exceed_context_size_error")
OVERFLOW_STATUSES = (400, 413, 422, 500)
"""llama.cpp has reported an overlong prompt as 500."""

MODERATED = re.compile(
    r"content[ _](management )?(policy|filter)|flagged|moderation", re.IGNORECASE
)
MODERATED_CODES = ("content_filter", "content_policy_violation")

CUT = ("length", "max_tokens", "model_length")
ENDED = (
    "stop", None, "", "eos", "eos_token", "end_turn", "stop_sequence", "tool_calls",
    "function_call",
)  # fmt: skip
"""Finish reasons of whole answers; "abort" and others mean that an answer is incomplete."""

RETRYABLE_STATUSES = (408, 409, 425, 429)
CAUSES = {
    401: "auth", 402: "auth", 403: "auth", 404: "not_found", 408: "timeout", 429: "rate_limited",
}  # fmt: skip
"""Causes of failures by status; all others are the server's or the request's."""

LARGEST_BODY = 32 * 2**20
"""The most bytes of a response, decompressed: what a server sends must not fill the memory."""

LONGEST_DETAIL = 500
LONGEST_READ = 100_000
"""So much of a text is searched for the beginning that a detail shows."""

LARGEST_NUMBER = 2**31 - 1
"""More tokens than any reply costs; the sum of many still fits into a record."""

SYSTEM_REFUSED = re.compile(
    r"\bsystem['\"]? (role|message|prompt|instruction)s?\b[^.]{0,40}\b(not|isn't|unsupported)\b"
    r"|\bdoes(n't| not) support (the )?['\"]?system\b"
    r"|developer instruction is not enabled"
    r"|only user(,| and) assistant roles",
    re.IGNORECASE,
)
SYSTEM_STATUSES = (400, 422, 500)
"""llama.cpp reports an error in a chat template as 500."""

SYSTEM_HINT = (
    "system_role=false moves the system text into the user message; "
    "system_role=auto detects what the server accepts"
)

HINTS = (
    (
        re.compile(r"max_tokens\b.*\bmax_completion_tokens", re.DOTALL),
        "set max_tokens_field=max_completion_tokens for this server",
    ),
    (
        re.compile(r"chat template", re.IGNORECASE),
        "use endpoint=completions for a model without a chat template",
    ),
)
"""Patterns of refusals, and the hint to the `--model_args` that avoids each."""


def headers_with(key: str, *, azure: bool = False, trusted: bool = True) -> dict[str, str]:
    """The official client's headers with the harness's user agent; Azure has its own key header.

    Only a `trusted` host gets those that the environment adds, which may hold keys.
    """
    environment = os.environ
    named = {name: environment[given] for name, given in NAMED.items() if given in environment}
    return {
        "Accept": "application/json",
        "Content-Type": "application/json",
        "User-Agent": f"{DISTRIBUTION}/{version(DISTRIBUTION)}",
        **({**named, **custom_headers()} if trusted else {}),
        **({"api-key": key} if azure else {"Authorization": f"Bearer {key}"}),
    }


def without_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with the system text moved before the first user message, after a blank line.

    Without a user message, the system text becomes one.
    """
    system = [turn.content for turn in messages if turn.role == "system"]
    others = [turn for turn in messages if turn.role != "system"]
    first = next((place for place, turn in enumerate(others) if turn.role == "user"), None)
    if system and first is not None:
        others[first] = Message("user", "\n\n".join([*system, others[first].content]))
    elif system:
        others.insert(0, Message("user", "\n\n".join(system)))
    return tuple(others)


def is_strict(schema: Any) -> bool:
    """True if every object in the schema lists all its fields, which strict servers require."""
    if isinstance(schema, list):
        return all(is_strict(part) for part in schema)
    if not isinstance(schema, Mapping):
        return True
    is_object = "properties" in schema or schema.get("type") == "object"
    if is_object and not (
        schema.get("additionalProperties") is False
        and set(schema.get("properties", {})) == set(schema.get("required", ()))
    ):
        return False
    return all(is_strict(part) for part in schema.values())


def read_body(received: bytes, content_type: str, screen: Screen = NO_SCREEN) -> object:
    """The JSON value of a response's body; CallError if it is not JSON."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return msgspec.json.decode(received)
    try:
        # The standard library also accepts half of a surrogate pair, which servers send if a
        # reply is cut within an emoji.
        return json.loads(received)
    except (ValueError, RecursionError) as error:
        wrong = str(error)
    # Not in the handler: as the context of this error, the library's would hold the whole body.
    text = short(received[:LONGEST_READ].decode("utf-8", "replace"), screen)
    raise CallError(
        "bad_response",
        f"{screen.error(content_type)} that is not JSON ({wrong}): {text!r}",
        retryable=True,
    )


def read_reply(body: object, screen: Screen = NO_SCREEN) -> Reply:
    """The reply in a server's body; CallError if it holds none.

    `screen` keeps secrets out of the reply and of the error's detail.
    """
    if not isinstance(body, dict):
        raise CallError(
            "bad_response",
            f"the answer is not a JSON object: {short(body, screen)!r}",
            retryable=True,
        )
    usage = usage_of(body.get("usage"), screen)
    try:
        return screen.reply(_reply(body, usage, screen))
    except CallError as error:
        error.usage = usage
        raise


def _reply(body: dict[str, Any], usage: Usage | None, screen: Screen) -> Reply:
    choices = body.get("choices")
    if not choices and isinstance(error := body.get("error"), dict):
        code = error.get("code")
        if isinstance(code, int) and 400 <= code <= LARGEST_NUMBER:
            meant = classify(code, error, screen=screen)
            if isinstance(meant, CallError):
                raise meant
        says = f"an error in place of an answer: {short(error.get('message'), screen)}"
        raise CallError("bad_response", says, retryable=True)
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise CallError("bad_response", "the answer holds no choice", retryable=True)
    message = choices[0].get("message")
    if message is None and "text" in choices[0]:
        # The completions endpoint sends a text without a message around it.
        message = {"content": choices[0]["text"]}
    if not isinstance(message, dict):
        raise CallError("bad_response", "the answer's choice holds no message", retryable=True)
    ended = choices[0].get("finish_reason")
    if ended == "content_filter" or message.get("refusal"):
        finish: Finish = "refused"
    elif ended in CUT or ended in ENDED:
        finish = "length" if ended in CUT else "stop"
    else:
        ended = short(ended, screen)
        raise CallError("bad_response", f"the answer ended with {ended!r}", retryable=True)
    text = _text(message.get("content"))
    if text is None and finish == "stop":
        raise CallError("no_content", "the answer's content is null", retryable=True)
    if finish == "refused" and not text:
        text = _text(message.get("refusal"))
    reasons = (message.get(name) for name in ("reasoning_content", "reasoning"))
    reasoning = next((one for one in reasons if isinstance(one, str) and one), None)
    return Reply(
        text=text or "",
        finish=finish,
        reasoning=reasoning and _whole(reasoning),
        usage=usage,
        id=_whole(body["id"]) if isinstance(body.get("id"), str) else None,
        logprobs=read_logprobs(found) if (found := choices[0].get("logprobs")) else None,
    )


def read_response(
    status: int,
    headers: Mapping[str, str],
    received: bytes,
    *,
    content_type: str,
    screen: Screen = NO_SCREEN,
    read: Callable[[object, Screen], Reply] = read_reply,
) -> Reply:
    """The reply in a whole response, which `read` finds in its body; CallError if it holds none."""
    if status < 300:
        return read(read_body(received, content_type, screen), screen)
    if status < 400:
        detail = f"HTTP {status}: {pointing(headers)}, and no redirect is followed"
        raise CallError("not_found", screen.error(detail), fatal=True, status=status)
    try:
        body = msgspec.json.decode(received)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = received[:LONGEST_READ].decode("utf-8", "replace")
    return read_status(status, body, wait=retry_after(headers), screen=screen)


def pointing(headers: Mapping[str, str]) -> str:
    """The host that a redirect points to; the rest of the address may hold secrets."""
    try:
        parts = urlsplit(headers.get("location", ""))
        host = f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
    except ValueError:
        return "the server points to another address"
    named = parts.scheme in ("http", "https") and parts.hostname
    return f"the server points to {_whole(host)}" if named else "the server points to another path"


def read_status(
    status: int, body: object, *, wait: float | None = None, screen: Screen = NO_SCREEN
) -> Reply:
    """The reply in a status and a decoded body; CallError if they hold none."""
    if status < 400:
        return read_reply(body, screen)
    error = body.get("error", body) if isinstance(body, dict) else body
    found = classify(status, error, retry_after=wait, screen=screen)
    if isinstance(found, CallError):
        raise found
    return found


def classify(
    status: int, error: object, *, retry_after: float | None = None, screen: Screen = NO_SCREEN
) -> CallError | Reply:
    """The CallError for an error status, or a refused Reply if a filter stopped the request.

    `error` is the `error` member of the body, or else the body; servers made with FastAPI put the
    message in its `detail`.
    """
    code = _line(error.get("code") or error.get("type")) if isinstance(error, Mapping) else ""
    text = error.get("message") or error.get("detail") if isinstance(error, Mapping) else error
    message, shown = short(text), short(text, screen)
    detail = f"HTTP {status}: {shown}" if shown else f"HTTP {status}"
    if status in OVERFLOW_STATUSES and (code in OVERFLOW_CODES or OVERFLOW.search(message)):
        return CallError("overflow", detail, status=status)
    if status in (400, 403) and (code in MODERATED_CODES or MODERATED.search(message)):
        return Reply(text="", finish="refused")
    retryable = status >= 500 or status in RETRYABLE_STATUSES
    cause = CAUSES.get(status, "server_error" if retryable else "bad_request")
    if cause in ("auth", "not_found") or (status == 429 and code == "insufficient_quota"):
        return CallError(cause, detail, fatal=True, status=status)
    wait = retry_after if retryable else None
    return CallError(cause, detail, retryable=retryable, status=status, retry_after=wait)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds to wait, from either form of the Retry-After header; None without one."""
    value = headers.get("retry-after", "")
    for text, unit in ((headers.get("retry-after-ms", ""), 1000), (value, 1)):
        if re.fullmatch(r"\s*-?\d+(\.\d+)?\s*", text):
            return max(0.0, float(text)) / unit
    try:
        until = parsedate_to_datetime(value)
        # The server's clock if it sends the date: the local clock may be wrong.
        date = headers.get("date")
        now = parsedate_to_datetime(date) if date else datetime.now(until.tzinfo)
        return max(0.0, (until - now).total_seconds())
    except (TypeError, ValueError, OverflowError):
        return None


def _text(content: object) -> str | None:
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    return _whole(content) if isinstance(content, str) else None


def _whole(text: str) -> str:
    """The text with lone surrogates replaced: no file can hold them."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def usage_of(usage: object, screen: Screen) -> Usage | None:
    """The tokens that the server counted; None unless it counts both prompt and completion.

    A count that is no whole number makes the usage unusable, which is counted.
    """
    if not isinstance(usage, dict):
        return None
    try:
        prompt, completion = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
        cached = _count(usage.get("prompt_tokens_details"), "cached_tokens")
        reasoning = _count(usage.get("completion_tokens_details"), "reasoning_tokens")
    except ValueError:
        screen.count("replies_with_unusable_usage")
        return None
    if prompt is None or completion is None:
        return None
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached or 0,
        reasoning_tokens=reasoning or 0,
    )


def _count(counts: object, name: str) -> int | None:
    """A number of tokens, None if it is not given; ValueError for what is no such number."""
    value = counts.get(name) if isinstance(counts, dict) else None
    if value is None:
        return None
    if type(value) is not int or not 0 <= value <= LARGEST_NUMBER:
        raise ValueError(name)
    return value


def short(text: object, screen: Screen = NO_SCREEN) -> str:
    """A text on one line, without secrets, and then shortened: half a key is still a secret."""
    line = screen.error(_line(text))
    return line if len(line) <= LONGEST_DETAIL else line[: LONGEST_DETAIL - 1] + "…"


def _line(value: object) -> str:
    """A value of the server as one line."""
    try:
        text = str(value if value is not None else "")
    except RecursionError:
        text = "a deeply nested value"
    return _whole(" ".join(text[:LONGEST_READ].split()))


def refuses_system(status: int | None, detail: str) -> bool:
    """True if a server's error means that it accepts no system message."""
    return status in SYSTEM_STATUSES and SYSTEM_REFUSED.search(detail) is not None


def read_logprobs(found: object) -> tuple[TokenLogprob, ...] | None:
    """The tokens of an answer with their logprobs; None if they are incomplete."""
    try:
        if isinstance(found, dict) and isinstance(found.get("content"), list):
            return tuple(
                _logprob(
                    one["token"],
                    one["logprob"],
                    [(top["token"], top["logprob"]) for top in one.get("top_logprobs") or ()],
                )
                for one in found["content"]
            )
        if isinstance(found, dict) and isinstance(found.get("tokens"), list):
            # Without alternatives, the field is null or holds an empty object for each token.
            tops = found.get("top_logprobs") or ()
            pairs = zip(found["tokens"], found["token_logprobs"], strict=True)
            return tuple(
                _logprob(*pair, (top or {}).items()) for pair, top in zip_longest(pairs, tops)
            )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None
    return None


def _logprob(token: Any, value: Any, top: Iterable[tuple[Any, Any]]) -> TokenLogprob:
    """A token with its logprob and its alternatives; TypeError for what is none."""
    pairs = [(token, value), *top]
    for text, number in pairs:
        usable = isinstance(number, int | float) and not isinstance(number, bool)
        if not (usable and isinstance(text, str) and math.isfinite(number)):
            raise TypeError(number)
    (text, number), *others = ((_whole(text), float(number)) for text, number in pairs)
    return TokenLogprob(token=text, logprob=number, top=tuple(others))

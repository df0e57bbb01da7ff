"""Bodies of requests, and what answers and refusals mean."""

import pytest
from harness_models.openai import make
from harness_models.openai_wire import (
    classify,
    is_strict,
    pointing,
    read_body,
    read_reply,
    read_status,
    refuses_system,
    retry_after,
    without_system,
)

from harness.contracts.model import (
    CallError,
    Message,
    ModelSettings,
    Reply,
    Request,
    Sampling,
    Usage,
)

SCHEMA = {"type": "array", "items": {"type": "string"}}


def body(sampling, *, schema=None, structured=False, **args):
    messages = (Message("system", "s"), Message("user", "u"))
    asked = Request(messages=messages, sampling=sampling, seed=5, schema=schema)
    args = {"model": "m", "base_url": "http://127.0.0.1:9/v1", **args}
    model = make(ModelSettings(args=args, structured=structured))
    return model.batch_line(asked)["body"]


def test_the_body_holds_what_was_asked_and_a_seed_only_where_chance_plays_a_part():
    turns = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    plain = {"model": "m", "messages": turns, "temperature": 0.0, "max_tokens": 9}
    assert body(Sampling(max_tokens=9)) == plain
    assert body(Sampling(max_tokens=9, presence_penalty=0)) == plain | {"presence_penalty": 0}
    given = {"temperature": 0.7, "top_p": 0.9, "top_k": 20, "presence_penalty": 0.5}
    warm = Sampling(stop=("a", "b"), max_tokens=9, **given)
    sent = {"model": "m", "messages": turns, "stop": ["a", "b"], **given}
    assert body(warm, max_tokens_field="most", seed="false") == sent | {"most": 9}
    assert body(warm) == sent | {"max_tokens": 9, "seed": 5}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("system: s; user: u", "user: s/u"),
        ("system: s; user: u; assistant: a; user: v", "user: s/u; assistant: a; user: v"),
        ("system: s; system: t; user: u", "user: s/t/u"),
        ("assistant: a; system: s; user: u", "assistant: a; user: s/u"),
        ("system: s", "user: s"),
        ("user: u; assistant: a", "user: u; assistant: a"),
    ],
)
def test_a_model_without_a_system_role_is_told_by_its_user(given, told):
    def messages(text):
        pairs = (part.split(": ") for part in text.split("; "))
        return tuple(Message(role, content.replace("/", "\n\n")) for role, content in pairs)

    assert without_system(messages(given)) == messages(told)


def test_a_schema_is_sent_only_when_the_run_is_structured():
    assert "response_format" not in body(Sampling(), schema=SCHEMA)
    assert "response_format" not in body(Sampling(), structured=True)
    assert body(Sampling(), schema=SCHEMA, structured=True)["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True},
    }


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, True),
        ({"type": "object"}, False),
        ({"type": "string", "default": {"required": None}}, True),
        ({"properties": {"a": {}}, "required": ["a"], "additionalProperties": False}, True),
        ({"properties": {"a": {}}, "required": [], "additionalProperties": False}, False),
        ({"anyOf": [{"type": "null"}, {"type": "object", "properties": {}}]}, False),
    ],
)
def test_strictness_is_asked_for_where_the_schema_allows_it(schema, expected):
    assert is_strict(schema) is expected


def completion(message, finish="stop", **more):
    return {"id": "c1", "choices": [{"message": message, "finish_reason": finish}], **more}


COUNTED = {
    **{"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 8}},
    **{"completion_tokens": 4, "completion_tokens_details": {"reasoning_tokens": 3}},
}
UNCOUNTED = {"prompt_tokens": None, "prompt_tokens_details": 1}
USAGE = Usage(prompt_tokens=10, completion_tokens=4, cached_tokens=8, reasoning_tokens=3)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (completion({"content": "hi"}), {"text": "hi"}),
        (completion({"content": "hi"}, None), {"text": "hi"}),
        (completion({"content": ""}), {"text": ""}),
        (completion({"content": "h"}, "length"), {"text": "h", "finish": "length"}),
        (completion({"content": None}, "length"), {"text": "", "finish": "length"}),
        (completion({"content": None}, "content_filter"), {"text": "", "finish": "refused"}),
        (completion({"content": None, "refusal": "no"}), {"text": "no", "finish": "refused"}),
        (completion({"content": "4", "reasoning_content": "2+2"}),
         {"text": "4", "reasoning": "2+2"}),
        (completion({"content": "4", "reasoning": "2+2"}), {"text": "4", "reasoning": "2+2"}),
        (completion({"content": [{"type": "text", "text": one} for one in "ab"]}), {"text": "ab"}),
        ({"choices": [{"message": {"content": "hi"}}], "id": 7}, {"text": "hi", "id": None}),
        (completion({"content": "hi"}, usage=COUNTED), {"text": "hi", "usage": USAGE}),
        (completion({"content": "hi"}, usage=UNCOUNTED), {"text": "hi"}),
    ],
)  # fmt: skip
def test_replies(answer, expected):
    assert read_reply(answer) == Reply(**{"id": "c1", **expected})


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        ("<html>", "bad_response"),
        ({}, "bad_response"),
        ({"choices": []}, "bad_response"),
        ({"choices": ["x"]}, "bad_response"),
        ({"choices": [{"finish_reason": "stop"}]}, "bad_response"),
        (completion({"content": "x"}, "abort"), "bad_response"),
        (completion({"content": None}), "no_content"),
        (completion({}), "no_content"),
        ({"error": {"message": "upstream broke"}}, "bad_response"),
        ({"error": {"message": "slow down", "code": 429}}, "rate_limited"),
    ],
)
def test_bodies_without_a_reply_are_errors_that_may_mend(answer, cause):
    with pytest.raises(CallError) as caught:
        read_reply(answer)
    assert (caught.value.cause, caught.value.retryable, caught.value.fatal) == (cause, True, False)


@pytest.mark.parametrize(
    ("status", "error", "cause", "retryable", "fatal"),
    [
        (400, {"message": "why"}, "bad_request", False, False),
        (401, {"message": "why"}, "auth", False, True),
        (403, {"message": "why"}, "auth", False, True),
        (404, {"message": "why"}, "not_found", False, True),
        (408, {"message": "why"}, "timeout", True, False),
        (409, {"message": "why"}, "server_error", True, False),
        (429, {"message": "why"}, "rate_limited", True, False),
        (500, {"message": "why"}, "server_error", True, False),
        (529, {"message": "why"}, "server_error", True, False),
        # An account without credit ends the run.
        (429, {"code": "insufficient_quota", "message": "why"}, "rate_limited", False, True),
        (422, {"detail": "why"}, "bad_request", False, False),
        (500, "why", "server_error", True, False),
    ],
)
def test_statuses(status, error, cause, retryable, fatal):
    found = classify(status, error, retry_after=2.0)
    assert isinstance(found, CallError)
    assert (found.cause, found.retryable, found.fatal) == (cause, retryable, fatal)
    assert (found.status, found.detail) == (status, f"HTTP {status}: why")
    assert found.retry_after == (2.0 if retryable else None)


def test_a_prompt_stopped_by_a_filter_is_a_refusal_and_long_words_are_cut():
    refused = Reply(text="", finish="refused")
    assert read_status(400, {"error": {"code": "content_filter", "message": "x"}}) == refused
    assert classify(403, {"message": "Your chosen model requires moderation"}) == refused
    assert classify(500, "x" * 10_000).detail == f"HTTP 500: {'x' * 499}…"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"code": "context_length_exceeded", "message": "x"}),
        (400, {"message": "This model's maximum context length is 4096 tokens. However, …"}),
        (400, {"message": "The decoder prompt (length 9) is longer than the maximum model length"}),
        (400, {"type": "exceed_context_size_error", "message": "the request exceeds"}),
        (400, {"message": "prompt is too long: 9 tokens > 8 maximum"}),
        (413, "Input is too long for requested model"),
        (422, "`inputs` tokens + `max_new_tokens` must be <= 8192"),
        (500, {"message": "the request exceeds the available context size"}),
    ],
)
def test_an_overlong_prompt_is_told_from_other_bad_requests(status, error):
    meant = classify(status, error)
    assert isinstance(meant, CallError)
    assert (meant.cause, meant.retryable, meant.fatal) == ("overflow", False, False)


@pytest.mark.parametrize(
    "message",
    [
        "System role not supported",
        "system messages are not supported by this model",
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
        "Developer instruction is not enabled for models/gemma-3-27b-it",
        "Only user and assistant roles are supported!",
    ],
)
def test_what_servers_say_of_the_system_is_understood(message):
    assert refuses_system(400, f"HTTP 400: {message}")
    assert not refuses_system(429, f"HTTP 429: {message}")
    assert not refuses_system(400, "HTTP 400: the system is not in a mood")


TEN = "Fri, 06 Nov 2026 10:00:{} GMT"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": TEN.format(30), "date": TEN.format("00")}, 30.0),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}, 0.0),
        ({"retry-after": "Mon, 01 Jan 2024 00:00:00 +99999999999999"}, None),
        ({"retry-after": "Mon, 01 Jan 20240000000000000000 00:00:00 GMT"}, None),
        ({"retry-after": "9" * 400}, float("inf")),
    ],
)
def test_retry_after(headers, expected):
    assert retry_after(headers) == expected


@pytest.mark.parametrize(
    ("location", "where"),
    [
        ("https://bob:pw@h.org:8/v1?key=1", "https://h.org:8"),
        ("http://h.org/v1", "http://h.org"),
        ("/login?key=1", "another path"),
        ("http:///login", "another path"),
        ("ftp://h.org/a", "another path"),
        ("http://[::1", "another address"),
    ],
)
def test_of_the_address_of_a_redirect_the_host_alone_is_told(location, where):
    assert pointing({"location": location}) == f"the server points to {where}"


def test_the_error_for_a_body_that_cannot_be_read_does_not_hold_the_body():
    with pytest.raises(CallError) as caught:
        read_body(b"[1", "application/json")
    assert caught.value.__context__ is None and caught.value.__cause__ is None

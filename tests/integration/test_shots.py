"""Examples as turns of a conversation, from the prompt's file to what a server is sent."""

from __future__ import annotations

import json

import pytest

PROMPT = """\
{% block system %}
You name interests.
{% endblock %}
{% block user_1 %}
1. [liked] The Night Train
{% endblock %}
{% block assistant_1 %}
[{"interest": "trains", "items": [1]}]
{% endblock %}
{% block user_2 %}
{% for one in history %}
{{ one.number }}. [{{ "liked" if one.liked else "skipped" }}] {{ one.title }}
{% endfor %}
{% endblock %}
"""
SHOT = ("1. [liked] The Night Train", '[{"interest": "trains", "items": [1]}]')


@pytest.fixture
def shots(harness, serve, tmp_path):
    """Runs the task with such a prompt; gives the bodies that the candidate was sent."""
    (tmp_path / "name.candidate.j2").write_text(PROMPT)
    (tmp_path / "shots.yaml").write_text(
        "task: shots\nextends: interests\nprompts: {name.candidate: name.candidate.j2}\n"
    )

    def shots(*more):
        text = json.dumps([{"interest": "trains", "items": [1, 2]}])
        server = serve(answer=lambda body: text)
        done = harness.here(
            "--model", "openai", "--model_args",
            ",".join([f"base_url={server.url},model=m,revision=r", *more]), "--judge", "lexical",
            "--tasks", str(tmp_path / "shots.yaml"), "--data", "sample", "--limit", "3", "--json",
        ).ok()  # fmt: skip
        assert done.summary("shots")["stages"]["name"]["done"] == 3
        return server.requests

    return shots


def test_each_block_is_a_turn(shots):
    for body in shots():
        *before, last = body["messages"]
        assert before == [
            {"role": "system", "content": "You name interests."},
            {"role": "user", "content": SHOT[0]},
            {"role": "assistant", "content": SHOT[1]},
        ]
        assert last["role"] == "user"
        assert last["content"].startswith("1. [")


def test_without_a_system_role_the_first_example_has_it(shots):
    for body in shots("system_role=false"):
        roles = [turn["role"] for turn in body["messages"]]
        assert roles == ["user", "assistant", "user"]
        assert body["messages"][0]["content"] == f"You name interests.\n\n{SHOT[0]}"


def test_a_model_without_chat_gets_them_as_one_text(shots):
    for body in shots("endpoint=completions"):
        start = f"You name interests.\n\nUser: {SHOT[0]}\n\nAssistant: {SHOT[1]}\n\nUser: 1. ["
        assert body["prompt"].startswith(start)
        assert body["prompt"].endswith("\n\nAssistant:")
        assert body["stop"] == ["\n\nUser:"]

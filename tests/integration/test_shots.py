"""Examples as turns of a conversation, from the prompt's file to what a server is sent."""

from __future__ import annotations

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


def test_each_block_is_a_turn(harness, serve, tmp_path):
    (tmp_path / "name.candidate.j2").write_text(PROMPT)
    (tmp_path / "shots.yaml").write_text(
        "task: shots\nextends: interests\nprompts: {name.candidate: name.candidate.j2}\n"
    )
    server = serve(answer=lambda body: '[{"interest": "trains", "items": [1, 2]}]')
    done = harness.here(
        "--model", "openai", "--model_args", f"base_url={server.url},model=m,revision=r",
        "--judge", "lexical", "--tasks", str(tmp_path / "shots.yaml"), "--data", "sample",
        "--limit", "3", "--json",
    ).ok()  # fmt: skip
    assert done.summary("shots")["stages"]["name"]["done"] == len(server.requests) == 3
    for body in server.requests:
        *before, last = body["messages"]
        assert before == [
            {"role": "system", "content": "You name interests."},
            {"role": "user", "content": "1. [liked] The Night Train"},
            {"role": "assistant", "content": '[{"interest": "trains", "items": [1]}]'},
        ]
        assert last["role"] == "user"
        assert last["content"].startswith("1. [")

"""`--structured`: servers are asked to hold answers to a schema, and it is told how they did."""

from __future__ import annotations

import json

PEOPLE = 40
CANDIDATE, JUDGE = "candidate-model", "judge-model"
FORMAT = {
    "type": "json_schema",
    "json_schema": {
        "name": "answer",
        "strict": False,
        "schema": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "interest": {"type": "string", "minLength": 1},
                    "items": {"type": "array", "items": {"type": "integer"}},
                },
                "required": ["interest", "items"],
            },
        },
    },
}
"""What the candidate's server is sent: the schema of the answers of `interests`."""


def formats(server, model: str) -> list:
    return [body.get("response_format") for body in server.requests if body["model"] == model]


def use_of(ended, stage: str, role: str) -> dict:
    return ended.summary()["stages"][stage]["roles"][role]


def test_the_schema_goes_to_the_server_and_into_the_record(harness, serve):
    server = serve(harness)
    done = harness.run("--structured").ok()
    assert formats(server, CANDIDATE) == [FORMAT] * PEOPLE
    assert [call["asked_schema"] for one in harness.records("name") for call in one["calls"]] == [
        True
    ] * PEOPLE
    use = use_of(done, "name", "candidate")
    assert (use["asked_schema"], use["met_schema"]) == (PEOPLE, PEOPLE)


def test_answers_without_a_schema_are_asked_for_as_ever(harness, serve):
    """The judge's verdicts are no JSON, and no role is asked for any without the option."""
    server = serve(harness)
    with_option = harness.run("--structured", "--output_path", "with")
    assert set(formats(server, JUDGE)) == {None}
    assert use_of(with_option, "support", "judge")["asked_schema"] == 0
    server.asked.clear()
    without = harness.run()
    assert with_option.code == without.code == 0
    assert len(formats(server, CANDIDATE)) == PEOPLE
    assert set(formats(server, CANDIDATE) + formats(server, JUDGE)) == {None}
    calls = [call for one in harness.records("name") for call in one["calls"]]
    assert not any(call.get("asked_schema") for call in calls)
    assert use_of(without, "name", "candidate")["asked_schema"] == 0


def test_answers_of_the_two_kinds_are_kept_apart(harness, serve):
    server = serve(harness)
    revised = ("--model_args", f"base_url={server.url},model={CANDIDATE},revision=1")
    keys = []
    for folder, options in (("without", ()), ("with", ("--structured",))):
        assert harness.run(*revised, *options, "--output_path", folder).code == 0
        (file,) = (harness.folder / folder).glob("*/manifest.json")
        manifest = json.loads(file.read_text())
        stages = manifest["tasks"]["interests"]["stages"]
        keys.append({stage["name"]: stage["key"] for stage in stages})
    assert keys[0]["name"] != keys[1]["name"]
    assert len(formats(server, CANDIDATE)) == 2 * PEOPLE


def test_the_table_shows_how_many_answers_met_the_schema(harness, serve):
    """A server that ignores the schema is seen: half of its answers are in a fence."""
    answered = []

    def answer(body):
        text = harness.answer(body)
        if body["model"] == JUDGE:
            return text
        answered.append(text)
        return f"```json\n{text}\n```" if len(answered) % 2 else text

    serve(harness, answer=answer)
    arguments = [one for one in harness.arguments("--structured", "--verbose") if one != "--json"]
    done = harness.command(arguments).ok()
    assert "name, candidate: 40 of 40 replies read: fenced 50%, strict 50%" in done.out
    assert "name, candidate: 40 calls asked for a schema, 20 replies met it" in done.out
    assert "judge: asked for a schema" not in done.out


def test_the_table_is_silent_where_no_schema_was_asked_for(harness, serve):
    serve(harness)
    done = harness.command([one for one in harness.arguments("--verbose") if one != "--json"])
    assert "name, candidate: 40 of 40 replies read: strict 100%" in done.out
    assert "asked for a schema" not in done.out

"""`--structured`: servers are asked to hold answers to a schema, and it is told how they did."""

from __future__ import annotations

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


def test_the_schema_goes_to_the_server_and_into_the_record_where_it_is_asked_for(harness, serve):
    server = serve(harness)
    done = harness.run("--structured", "--limit", "6", "--output_path", "with").ok()
    # The judge's verdicts are no JSON.
    assert (formats(server, CANDIDATE), set(formats(server, JUDGE))) == ([FORMAT] * 6, {None})
    use = use_of(done, "name", "candidate")
    assert (use["asked_schema"], use["met_schema"]) == (6, 6)
    assert use_of(done, "support", "judge")["asked_schema"] == 0
    server.asked.clear()

    without = harness.run("--limit", "6").ok()
    assert set(formats(server, CANDIDATE) + formats(server, JUDGE)) == {None}
    assert use_of(without, "name", "candidate")["asked_schema"] == 0
    journal = next(harness.folder.glob("with/*/interests/1-name.jsonl")).read_text()
    given = [call.get("asked_schema") for one in harness.records("name") for call in one["calls"]]
    assert (given, journal.count('"asked_schema":true')) == ([None] * 6, 6)


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
    arguments = harness.arguments("--structured", "--verbose", "--limit", "6")
    done = harness.command([one for one in arguments if one != "--json"]).ok()
    assert "name, candidate: 6 of 6 replies read: fenced 50%, strict 50%" in done.out
    assert "name, candidate: 6 calls asked for a schema, 3 replies met it" in done.out
    assert "judge: asked for a schema" not in done.out

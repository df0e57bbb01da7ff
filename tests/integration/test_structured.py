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

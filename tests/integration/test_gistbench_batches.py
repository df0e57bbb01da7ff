"""GISTBench asked in batches: all of its stages, with the scores of a live run."""

from __future__ import annotations

import json

TASK = "gist_synthetic"


def forgetful(gist):
    """Good answers, but for basketball: it has a category only where it is asked about alone."""

    def answer(body):
        said = gist.answer(body)
        if gist.stage_of(body) != "taxonomy":
            return said
        categories = json.loads(said)
        if len(categories) > 1:
            categories = {n: one for n, one in categories.items() if one != "Basketball"}
        return json.dumps(categories)

    return answer


def completed(body, text):
    """The body of a response of the chat completions API."""
    message = {"role": "assistant", "content": text}
    return {
        "id": "c", "object": "chat.completion", "created": 1, "model": body["model"],
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    }  # fmt: skip


def service(folder, name, answer):
    """Answers a file of requests; the name of the file with the answers."""
    lines = [json.loads(line) for line in (folder / name).read_text().splitlines()]
    replies = [
        {
            "id": "b", "custom_id": line["custom_id"], "error": None,
            "response": {
                "status_code": 200, "request_id": "r",
                "body": completed(line["body"], answer(line["body"])),
            },
        }
        for line in lines
    ]  # fmt: skip
    (folder / f"{name}.out").write_text("".join(json.dumps(one) + "\n" for one in replies))
    return f"{name}.out"


def test_all_stages_can_be_asked_in_batches(gist, serve):
    gist.url = "http://127.0.0.1:9/v1"
    stages = []
    for turn in range(9):
        words = gist.arguments("--out", f"{turn}.jsonl")[3:]
        written = gist.here("batch", "write", *words).ok()
        if written.json["status"] == "done":
            break
        asked = written.json["requests"]
        stages.append(sorted(stage.partition("/")[2] for file in asked for stage in file["stages"]))
        outs = [
            service(gist.folder, file.name, forgetful(gist))
            for file in gist.folder.glob(f"{turn}*.jsonl")
        ]
        assert gist.here("batch", "read", str(gist.folders[0]), *outs).code == 0
    # The second question of the taxonomy is about the basketball that the first answer left out.
    assert stages == [
        ["predict"], ["verify"], ["overlap", "taxonomy"], ["taxonomy"], ["specificity"],
    ]  # fmt: skip
    (batched,) = gist.folders
    (batch,) = map(json.loads, (batched / TASK / "3-taxonomy.jsonl").read_text().splitlines())
    assert len(batch["calls"]) == 2
    assert batch["outcome"]["value"]["categories"]["basketball clips"] > 0
    assert batch["outcome"]["value"]["remembered"] == 0

    serve(gist, answer=forgetful(gist))
    live = gist.here(*gist.arguments("--output_path", "live", "--no_store")[3:]).ok()
    ours = json.loads((batched / TASK / "summary.json").read_text())
    assert ours["metrics"] == live.summary(TASK)["metrics"]

"""Right answers for every role, and answers that are damaged in ways that nobody may score."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from harness.base.hashing import stable_int
from harness.contracts.model import CallError, Reply, Request
from harness.registry import load_plugins
from harness.testing.scripted import Answer, ScriptedModel

NONSENSE = 'As to ]}{"0": [NaN, -1, {"": null}] and so on\u2028<<<'
DAMAGES: tuple[Callable[[str], Answer], ...] = (
    lambda _: CallError("bad_request", "this call fails in a check of failures"),
    lambda _: Reply(text="I cannot help with that.", finish="refused"),
    lambda text: Reply(text=text[: len(text) // 2], finish="length"),
    lambda _: " \n",
    lambda _: NONSENSE,
)


def right(request: Request) -> str:
    """The baseline's answer, or for a judge one by the words that texts share."""
    assert request.topic is not None
    topic, variables = request.topic, request.topic.variables
    if "choices" in variables:
        wanted = set(variables["subject"].casefold().split())
        found = [name for name, text in variables["choices"] if wanted & {*text.casefold().split()}]
        return ", ".join(found[: variables["at_most"]]) or "NONE"
    if "labels" in variables:
        labels = variables["labels"]
        places = enumerate(variables["texts"], start=1)
        return json.dumps({n: labels[stable_int(text) % len(labels)] for n, text in places})
    respond = load_plugins().respondent(topic.benchmark, topic.prompt, topic.role, "default")
    texts = (message.content for message in request.messages)
    text: str = respond.factory()(variables, Random(stable_int(*texts)))
    return text


def damaged(request: Request) -> Answer:
    """The right answer, but to three questions in ten, however often they are asked, a damaged."""
    first = next(one.content for one in request.messages if one.role == "user")
    chance = Random(stable_int(first))
    return chance.choice(DAMAGES)(right(request)) if chance.random() < 0.3 else right(request)


class BatchModel(ScriptedModel):
    """Answers rightly in batches: the line of a request holds its answer."""

    takes_batches = True

    def batch_line(self, request: Request) -> dict[str, Any]:
        return {"method": "POST", "url": "/answers", "body": {"text": right(request)}}

    def read_batch(self, status: int, body: Any) -> Reply:
        return Reply(text=body["text"])


def answer_lines(requests: Path) -> Path:
    """The file of a batch service with the answers to a file of a BatchModel's requests."""
    answers = requests.with_suffix(".out")
    with answers.open("w", encoding="utf-8") as file:
        for line in map(json.loads, requests.read_text("utf-8").splitlines()):
            response = {"status_code": 200, "body": line["body"]}
            file.write(json.dumps({"custom_id": line["custom_id"], "response": response}) + "\n")
    return answers


def moved(
    before: Iterable[bytes], after: Iterable[bytes], *, names: Collection[str], excused: set[str]
) -> Iterator[str]:
    """Each score of these names that differs in another run, and nothing of its user says why.

    Both runs are given by the lines of their scores.
    """
    old, new = ({one["id"]: one for one in map(json.loads, lines)} for lines in (before, after))
    if old.keys() != new.keys():
        yield f"other units: {sorted(old.keys() ^ new.keys())[:3]}"
        return
    counted = {now["user"] for unit, now in new.items() if now["counts"] != old[unit]["counts"]}
    for unit, now in new.items():
        was = old[unit]
        for name in names:
            values = was["values"].get(name), now["values"].get(name)
            parts, _ = now.get("parts", {}).get(name, (0, 0))
            said = parts or name in now["missing"] or name in now.get("lost", {})
            if values[0] != values[1] and not (said or now["user"] in counted | excused):
                yield f"{name} of {unit}: {values[0]} became {values[1]}"

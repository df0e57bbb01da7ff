"""The stage in whole runs over the sample: what it asks, reads and records."""

import ast
import json
import re

from harness_behaviour.benchmark import BEHAVIOUR
from harness_behaviour.rules import recommend
from harness_behaviour.stages import RECOMMEND

from harness.testing import ScriptedModel, run_tasks

TASK = "behaviour_movies_a"


def shown(request):
    """The candidates that a prompt lists, read from its text alone."""
    [text] = [message.content for message in request.messages]
    return ast.literal_eval(re.search(r"Candidates: (\[.*\])$", text)[1])


def first_ten(request):
    return json.dumps(shown(request)[:10])


def test_each_prompt_is_asked_once_at_temperature_0(tmp_path):
    model = ScriptedModel(first_ten)
    result = run_tasks(TASK, folder=tmp_path, model=model, limit=12, set=["kept=3", "tries=300"])
    assert model.count == 12
    assert {request.sampling.temperature for request in model.requests} == {0.0}
    assert RECOMMEND.calls.least == RECOMMEND.calls.most == 1
    assert (RECOMMEND.roles, BEHAVIOUR.scored_with) == (("candidate",), ("fills", "window"))
    journal = (result.folder / TASK / "1-recommend.jsonl").read_text("utf-8")
    for one in map(json.loads, journal.splitlines()):
        assert one["user"] == one["id"]
        assert one["outcome"]["value"]["places"] == list(range(10))
        assert one["item"]["setting"] == "a"
    manifest = json.loads((result.folder / "manifest.json").read_text("utf-8"))
    [stage] = manifest["tasks"][TASK]["stages"]
    # Similarity belongs to the stage, and what scores use does not.
    assert stage["components"]["options"] == {"domain": "movies", "similarity": 0.85}


def test_the_rule_sees_only_what_the_prompt_shows():
    candidates = [f"Film {place} (19{place})" for place in range(50, 99)] + ["Night Boat (1990)"]
    variables = {"history": ["The Night Train (1962)"], "candidates": candidates}
    said = json.loads(recommend(variables, None))
    # A word of the history first, then the nearest years.
    assert said[:3] == ["Night Boat (1990)", "Film 62 (1962)", "Film 61 (1961)"]
    assert json.loads(recommend({**variables, "history": []}, None)) == candidates[:10]

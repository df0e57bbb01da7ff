"""What the plugin promises, and what happens where answers are cut or servers are busy."""

from pathlib import Path

from harness import Reply
from harness.testing import ScriptedModel, check_plugin
from harness.testing.faults import first, status

VERSIONS = Path(__file__).with_name("versions.json")
TASTES = '[{"taste": "sea", "books": [1]}]'


def test_it_keeps_what_every_plugin_promises():
    check_plugin("acme_borrowed", versions=VERSIONS)


def answer(request):
    """The sea for everybody, and nothing that can be read about Ann."""
    variables = request.topic.variables
    if "loans" not in variables:
        return "A"
    is_ann = variables["loans"][0]["title"] == "Murder at the Mill"
    return Reply(text=TASTES, finish="length" if is_ann else "stop")


def test_an_answer_that_was_cut_is_missing_and_no_zero(harness_run):
    run = harness_run("acme_borrowed", model=ScriptedModel(answer), judge="acme-strict:within=9")
    kept = run.summaries[0].metrics["kept"]
    assert (kept.value, kept.n, kept.missing) == (1 / 3, 3, {"tastes/truncated": 1})


def test_a_busy_server_costs_nothing_but_time(harness_run, harness_server):
    harness_server.answer = lambda body: TASTES
    harness_server.faults = first(2, status(503))
    run = harness_run("acme_borrowed", model=harness_server, judge="lexical", set={"next": False})
    assert run.summaries[0].metrics["kept"].n == 4
    assert harness_server.count == 6

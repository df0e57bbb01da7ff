"""A panel of three judges that disagree, behind a real server, and what is told of them.

Of what ann and bob are shown with, the first judge takes everything, the second the first title,
the third ann's second title alone:

    title       first  second  third   panel
    ann 1       yes    yes     no      yes
    ann 2       yes    no      yes     yes
    ann 3       yes    no      no      no
    bob 1       yes    yes     no      yes
    bob 2       yes    no      no      no
    bob 3       yes    no      no      no
"""

import json
from typing import Any

import pytest

from harness.testing import FaultyServer
from harness.testing.faults import Fault, status

JUDGES = ("first", "second", "third")
PEOPLE = "user,title,action\n" + "".join(
    f"{user},{user} {word},liked\n" for user in ("ann", "bob") for word in ("one", "two", "three")
)


def answers(body: dict[str, Any]) -> str:
    prompt = body["messages"][-1]["content"]
    if body["model"] not in JUDGES:
        return '[{"interest": "counting", "items": [1, 2, 3]}]'
    said = {"first": "1, 2, 3", "second": "1", "third": "2" if "ann one" in prompt else "NONE"}
    return said[body["model"]]


class Panel:
    """A run of the task with a panel, in a folder of its own."""

    def __init__(self, harness: Any, server: FaultyServer) -> None:
        self.harness, self.server = harness, server
        (harness.folder / "people.csv").write_text(PEOPLE)

    def run(self, judge: str | None = None, *more: str) -> Any:
        members = (f"openai:base_url={self.server.url},model={name}" for name in JUDGES)
        return self.harness.here(
            "--model", "openai", "--model_args", f"base_url={self.server.url},model=candidate",
            "--judge", judge or f"panel:{'+'.join(members)}", "--tasks", "interests",
            "--data", "people.csv", "--json", *more,
        )  # fmt: skip

    def analyse(self, name: str, *more: str) -> dict[str, Any]:
        (folder,) = self.harness.folders
        told = self.harness.here("analyse", name, str(folder), *more, "--json").ok()
        return told.json["report"]


@pytest.fixture
def panel(harness):
    with FaultyServer(answers, models=("candidate", *JUDGES)) as server:
        yield Panel(harness, server)


@pytest.fixture(scope="module")
def ended(tmp_path_factory, harnesses):
    """A panel with a run, which no test changes, and what that said."""
    with FaultyServer(answers, models=("candidate", *JUDGES)) as server:
        panel = Panel(harnesses(tmp_path_factory.mktemp("panel")), server)
        yield panel, panel.run().ok()


@pytest.fixture
def agreement(ended):
    """The analysis of that run beside these labels."""
    panel, _ = ended

    def agreement(text, name="labels.csv"):
        (panel.harness.folder / name).write_text(text)
        return panel.analyse("judge-agreement", "--labels", name)

    return agreement


def test_the_majority_decides_and_every_vote_is_on_record_with_how_far_members_agree(ended):
    panel, done = ended
    # Two of ann's three titles, and one of bob's, are kept.
    assert done.summary()["metrics"]["support"]["value"] == 0.5
    assert done.summary()["roles"]["judge"] == "panel:first+second+third"
    ann, bob = sorted(panel.harness.records("support"), key=lambda record: record["user"])
    assert (ann["outcome"]["value"], bob["outcome"]["value"]) == ({"kept": [1, 2]}, {"kept": [1]})
    assert [call["member"] for call in ann["calls"]] == [f"openai:{name}" for name in JUDGES]
    identity = panel.harness.manifest()["roles"]["judge"]["identity"]
    assert [about["model"]["name"] for about in identity["members"].values()] == list(JUDGES)
    assert panel.server.count == 2 + 6
    (folder,) = panel.harness.folders
    shown = panel.harness.here("show", str(folder), "--sample", "bob").out
    assert "verdict of judge, prompt support" in shown
    assert "judge openai:third, prompt support" in shown
    together, members, pairs = panel.analyse("judge-panel")["sheets"]
    # Nine of eighteen votes are yes, so chance agrees on a half; of the three pairs of votes on a
    # title always one agrees: (1/3 - 1/2) / (1/2).
    assert together["rows"] == [
        ["candidate", "interests", "support, judge", 3, 6, 0, 0, 6,
         pytest.approx(-1 / 3)]
    ]  # fmt: skip
    assert [row[3:] for row in members["rows"]] == [
        ["openai:first", 6, 6, 50.0],
        ["openai:second", 6, 6, pytest.approx(500 / 6)],
        ["openai:third", 6, 6, pytest.approx(400 / 6)],
    ]
    # Who says yes to everything agrees by chance alone. Second and third agree on 3 of 6, by chance
    # on 2/6 · 1/6 + 4/6 · 5/6 = 22/36: (18 - 22) / (36 - 22).
    kappas = {row[3]: (row[5], row[6]) for row in pairs["rows"]}
    assert kappas == {
        "openai:first and openai:second": (pytest.approx(200 / 6), pytest.approx(0.0)),
        "openai:first and openai:third": (pytest.approx(100 / 6), pytest.approx(0.0)),
        "openai:second and openai:third": (50.0, pytest.approx(-2 / 7)),
    }


def test_a_panel_goes_on_without_one_that_fails(panel):
    panel.server.faults = lambda asked: status(400) if asked.body["model"] == "third" else None
    done = panel.run().ok()
    # The first titles have both votes, all others one of two: tied, and so not selected.
    assert done.summary()["metrics"]["support"]["value"] == pytest.approx(1 / 3)
    (folder,) = panel.harness.folders
    said = "failed calls of panel members: judge openai:third 2 of 2"
    for chapter, line in ((), said), (("--metrics",), f"  {said}"):
        shown = panel.harness.here("show", str(folder), *chapter).ok().out.splitlines()
        assert shown.count(line) == 1
    panel.harness.here("report", str(folder), "-o", "page.html").ok()
    page = (panel.harness.folder / "page.html").read_text()
    assert "failed calls of panel members: judge openai:third 2 of 2" in page
    ended = panel.harness.here("show", str(folder), "--task", "interests").ok().out
    assert said in ended
    together, members, _ = panel.analyse("judge-panel")["sheets"]
    assert together["rows"][0][4:] == [6, 0, 4, 0, None]
    assert together["notes"] == [
        "candidate, interests, support, judge: no κ: nothing was labelled by all"
    ]
    assert members["rows"][2][3:] == ["openai:third", 0, 0, None]


LABELS = """item,option,label,rater
ann/1,1,yes,zoe
ann/1,2,no,zoe
ann/1,3,no,zoe
bob/1,1,Yes,zoe
bob/1,2,no,zoe
bob/1,3,,zoe
eve/1,1,no,zoe
ann/1,,no,yan
"""


def test_judges_stand_beside_people(agreement):
    report = agreement(LABELS)
    assert report["notes"] == [
        "NOT COMPARABLE with published results: "
        "not the published data: the task knows no digest or count of it",
        "labels: 7; blank: 1",
        "candidate, interests: matched 5; of no decision here 1, of several decisions, "
        "without saying which 1",
    ]
    agreement, confusion = report["sheets"]
    rows = {row[3]: row[4:9] for row in agreement["rows"]}
    # The panel says yes to three of five, zoe to two, and they agree on four; by chance on
    # 6/25 + 6/25: (20 - 12) / (25 - 12). The second says what zoe says.
    assert rows == {
        "panel:first+second+third": ["zoe", 5, 0, 80.0, pytest.approx(8 / 13)],
        "openai:first": ["zoe", 5, 0, 40.0, pytest.approx(0.0)],
        "openai:second": ["zoe", 5, 0, 100.0, 1.0],
        # Agrees on 2 of 5: zoe's yes 2/5, its own 1/5, by chance 2/25 + 12/25.
        "openai:third": ["zoe", 5, 0, 40.0, pytest.approx((10 - 14) / (25 - 14))],
    }
    assert [row[5:] for row in confusion["rows"] if row[3].startswith("panel")] == [
        ["no", "no", 2], ["no", "yes", 1], ["yes", "yes", 2],
    ]  # fmt: skip


def test_labels_may_be_json_lines_with_fractions_and_of_other_tasks(agreement):
    rows = [
        {"item": "ann/1", "question": "counting", "option": 2, "label": True, "task": "interests"},
        {"item": "bob/1", "question": 1.0, "option": 1.0, "label": 1.0},
        {"item": "bob/1", "option": 1, "label": "no", "task": "another"},
    ]
    report = agreement("\n".join(map(json.dumps, rows)), "labels.jsonl")
    # The second takes the first title alone.
    [row] = [row for row in report["sheets"][0]["rows"] if row[3] == "openai:second"]
    assert row[3:] == ["openai:second", "people", 2, 0, 50.0, 0.0, None]
    assert report["notes"][2].endswith("matched 2; of other tasks 1")


def test_several_people_have_a_majority_unless_they_are_tied_or_alone(agreement):
    said = {"zoe": "101", "yan": "110", "xia": "010"}
    rows = [
        f"ann/1,{n},{label},{who}" for who, all in said.items() for n, label in enumerate(all, 1)
    ]
    rows += ["bob/1,1,1,zoe", "bob/1,1,0,yan", "bob/1,2,0,yan"]
    report = agreement("\n".join(["item,option,label,rater", *rows]))
    assert report["notes"][-1] == (
        "candidate, interests, support, judge: no majority: labelled by one rater 1, tied 1"
    )
    of_panel = {
        row[4]: row[5:9] for row in report["sheets"][0]["rows"] if row[3].startswith("panel")
    }
    # Two of three say yes to ann's first and second title, as the panel does. To zoe's yes, no, yes
    # and yes it says yes, yes, no and yes: 2 of 4, by chance 3/4 · 3/4 + 1/4 · 1/4 = 10/16.
    assert of_panel["majority of people"] == [3, 0, 100.0, 1.0]
    assert of_panel["zoe"] == [4, 0, 50.0, pytest.approx((8 - 10) / (16 - 10))]


def test_labels_of_one_run_do_not_pass_silently_for_those_of_another(panel):
    one = f"openai:base_url={panel.server.url},model=first"
    assert panel.run(one).code == 0
    panel.server.answer = lambda body: answers(body).replace("counting", "sorting")
    assert panel.run(one, "--seed", "1").code == 0
    (panel.harness.folder / "labels.csv").write_text("item,option,label\nann/1,1,yes\n")
    folders = [str(folder) for folder in panel.harness.folders]
    assert len(folders) == 2
    given = ("analyse", "judge-agreement", *folders, "--labels", "labels.csv", "--json")
    assert panel.harness.here(*given).json["report"]["notes"][-1] == (
        "labels that fit decisions on different subjects in several runs: 1; add a column question "
        "that holds the subject"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("item,option,label\nann/1,1,maybe\n", "expected: yes or no"),
        ("item,option,label\nann/1,1,yes\nann/1,1,no\n", "one label from each rater"),
    ],
)
def test_labels_that_cannot_be_used_are_named(ended, text, told):
    panel, _ = ended
    (panel.harness.folder / "labels.csv").write_text(text)
    (folder,) = panel.harness.folders
    done = panel.harness.here("analyse", "judge-agreement", str(folder), "--labels", "labels.csv")
    assert done.code != 0
    assert told in done.err


PRICES = "[prices]\n" + "".join(
    f'"openai:{name}" = {{input = {price}, output = 5}}\n' for price, name in enumerate(JUDGES, 1)
) + '"openai:candidate" = {input = 0, output = 0}\n'  # fmt: skip


def test_each_member_is_counted_and_paid_for_by_its_own_price(panel):
    def answered(asked):
        body = {"id": "c", "usage": {"prompt_tokens": 1000, "completion_tokens": 100}}
        message = {"role": "assistant", "content": answers(asked.body)}
        return Fault(body={**body, "choices": [
            {"index": 0, "message": message, "finish_reason": "stop"}
        ]})  # fmt: skip

    panel.server.faults = answered
    (panel.harness.folder / "prices.toml").write_text(PRICES)
    planned = panel.run(None, "--prices", "prices.toml", "--dry_run").json
    assert panel.server.count == 0
    done = panel.run(None, "--prices", "prices.toml", "--max_cost", "1").ok()
    roles = done.summary()["stages"]["support"]["roles"]
    # Two calls each of 1,000 and 100 tokens: 2 · (1,000 · input + 100 · 5) millionths.
    assert {name: (use["calls"], use["cost"]["paid"]) for name, use in roles.items()} == {
        "judge openai:first": (2, pytest.approx(0.003)),
        "judge openai:second": (2, pytest.approx(0.005)),
        "judge openai:third": (2, pytest.approx(0.007)),
    }
    [support] = [stage for stage in planned["stages"] if stage["stage"] == "support"]
    [role] = support["roles"]
    assert role["calls"] == support["most_calls"] == 3 * support["items"]
    mean = role["prompt_tokens"] * 2 + role["most_completion_tokens"] * 5
    assert role["cost"]["at_most"] == pytest.approx(mean / 1_000_000)

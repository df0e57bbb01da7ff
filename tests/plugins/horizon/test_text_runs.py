"""Tasks 2 and 3 as runs of the sample: refusals, tables, curves, and what a case takes on disk."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from builders.stages import work_at_desk
from harness_horizon.text.finding import COMPARABLE_IF, HORIZON_TEXT
from harness_horizon.text.histories import Options
from harness_horizon.text.searching import RETRIEVE, Queries, Search, suits
from harness_horizon.text.text_tables import curves, main

import harness
from harness.base.errors import UsageError
from harness.contracts.identity import Identity
from harness.contracts.model import Reply
from harness.runs.run_folder import RunFolder
from harness.scoring.finished_task import finished_task
from harness.testing.scripted import ScriptedModel, offered

MOST_BYTES = 8_192
"""What a case of Task 2 may take on disk, without its prompt."""


def ran(folder, tasks, model="baseline", **options):
    """The result of a run of the sample, whose titles are searched without an index."""
    own = [model] if isinstance(model, ScriptedModel) else []
    with offered(own):
        return harness.evaluate(
            tasks, model=own[0].spec if own else model, data="sample", reuse="run",
            **{"output_path": folder / "runs", "limit": 12, "quiet": True, **options},
        )  # fmt: skip


def finished(result, label="baseline"):
    folder = RunFolder(result.folder)
    manifest = folder.manifest()
    return [finished_task(folder, manifest, one.task, HORIZON_TEXT, label=label)
            for one in result.summaries]  # fmt: skip


def test_both_tasks_run_and_their_tables_hold_published_rows_beside_cosine_alone(tmp_path):
    tasks = finished(ran(tmp_path, ["horizon_text"], limit=5))
    for setting in ("1c", "1d"):
        asked = {"prompt": "one", "setting": setting}
        tasks += finished(ran(tmp_path, ["horizon_query"], set=asked, limit=3))
    report = main(tasks, None)
    five, six, single = report.sheets
    assert [sheet.title.partition(":")[0] for sheet in report.sheets] == [
        "Table 5", "Table 6", "In the layout of Table 10",
    ]  # fmt: skip
    for sheet, cases in ((five, ["all", "whole", "by user"]), (six, ["all", "whole"])):
        rows = [dict(zip(sheet.columns, row, strict=True)) for row in sheet.rows]
        assert [row["cases"] for row in rows[: len(cases)]] == cases
        papers = rows[len(cases) :]
        assert [row["model"] for row in papers] == [
            "paper: LLAMA-3.1-8B", "paper: Qwen3-8B", "paper: Gemma2-9B",
        ]  # fmt: skip
        for row in papers:
            assert all(row[name] is None for name in sheet.columns[3:10])
            assert all(row[name] is not None for name in sheet.columns[10:16])
    assert dict(zip(six.columns, six.rows[3], strict=True))["~R@100"] == 15.75
    assert any("can pass 100" in note for note in six.notes)
    assert [row[:2] for row in single.rows] == [
        ("1c: users trained on", "K=10"), ("1c: users trained on", "K=100"),
        ("1d: users held out", "K=10"), ("1d: users held out", "K=100"),
    ]  # fmt: skip
    recall = curves(tasks, None)
    [sheet] = recall.sheets
    for row in sheet.rows:
        assert list(row[3:]) == sorted(row[3:])
    assert len(recall.figures) == 1
    assert main((), None).sheets == ()


def test_a_table_names_what_was_searched_and_its_published_rows_are_of_held_out_users_alone(
    tmp_path,
):
    [held_out] = finished(ran(tmp_path, ["horizon_long"], limit=2))
    [trained] = finished(ran(tmp_path, ["horizon_long_1c"], limit=2))
    searched = held_out.manifest.roles["retriever"].identity["model"]["details"]
    searched["catalog_sample"] = 5_000
    six, as_six = main([trained, held_out], None).sheets
    assert (six.title[:8], as_six.title[:10]) == ("Table 6:", "As Table 6")
    named = "baseline: titles by hashing:words, index sample"
    assert f"{named}, a sample of 5,000 titles, in which more is found" in six.notes
    assert named in as_six.notes
    for sheet, papers in ((six, 3), (as_six, 0)):
        assert sum(row[0].startswith("paper") for row in sheet.rows) == papers
        assert any(COMPARABLE_IF in note for note in sheet.notes) == (papers > 0)


def test_recall_of_a_candidate_that_names_the_next_title_is_whole_in_both_merges(tmp_path):
    for merge in ("round_robin", "published"):
        result = ran(tmp_path, ["horizon_query"], knowing("d"), set={"merge": merge}, limit=1)
        [task] = finished(result)
        metrics = task.summary.metrics
        assert metrics["recall_10"].value == metrics["recall_10_user"].value == 1
        assert metrics["precision_10"].value == pytest.approx(0.1)
        assert metrics["cosine_best"].value == pytest.approx(1, abs=1e-3)


THOUGHT = "4,316 tokens, 4,096 of them for reasoning"


@pytest.mark.parametrize("thinks", [True, False])
def test_what_a_thinking_model_had_beside_table_9_is_in_the_setting_and_the_stamp(
    tmp_path, monkeypatch, thinks
):
    monkeypatch.setattr(ScriptedModel, "thinks", lambda _: thinks)
    result = ran(tmp_path, ["horizon_query", "horizon_long"], knowing("d"), limit=1)
    stamps = [one.not_comparable_because for one in result.summaries]
    why = ["the candidate thinks: 4,316 tokens, the published 220",
           "the candidate thinks: 4,446 tokens, the published 350"]  # fmt: skip
    assert [one in stamp for one, stamp in zip(why, stamps, strict=True)] == [thinks, thinks]
    assert not any("thinks" in one for stamp in stamps for one in stamp) or thinks
    sheets = main(finished(result), None).sheets
    assert [sheet.rows[0][1] for sheet in sheets] == (
        [THOUGHT, THOUGHT.replace("4,316", "4,446")] if thinks else ["", ""]
    )


SEARCH = Search(id="u/1", user="u", shown=1, queries=Queries(("a", "b")), truths=("t",))
FIT = {"found": [[0, 0.5, 0, 0.95]], "truths": [7], "cosines": [[0.5], [0.4]]}


async def answered(merge="round_robin", **changes):
    answers = [json.dumps(FIT | changes)]
    options = Options(merge=merge)
    return await work_at_desk(RETRIEVE, SEARCH, answers, benchmark="horizon_text", options=options)


@pytest.mark.parametrize("merge", ["round_robin", "published"])
async def test_a_catalogue_is_asked_for_a_hundred_titles_in_the_merge_of_the_task(merge):
    worked = await answered(merge)
    assert json.loads(worked.requests[0].messages[0].content) == {
        "queries": ["a", "b"], "truths": ["t"], "k": 100, "merge": merge,
    }  # fmt: skip
    assert worked.outcome.near == ((0, 0),)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cosines", [[0.5]]), ("truths", [1, 2]), ("found", [[0, 0.5, 1, 0.95]]),
        ("found", [[0, 0.5, -1, 0.95]]), ("also", [[0, 1, 0.95]]), ("also", [[100, 0, 0.95]]),
    ],
)  # fmt: skip
async def test_an_answer_that_does_not_fit_its_question_is_a_failure(field, value):
    assert (await answered(**{field: value})).outcome.cause == "schema"


def knowing(name):
    """A candidate that knows what follows, since the same titles follow in the sample."""
    from builders.horizon import rows_of
    from harness_horizon.recommenders.training_data import SAMPLE

    after = {}
    for row in rows_of(SAMPLE / "cases-1d.parquet"):
        for place in range(row["first"], len(row["titles"])):
            after[" <SEP> ".join(row["titles"][:place])] = row["titles"][place]

    def answer(request):
        text = request.messages[0].content
        history = text.partition("History: ")[2].partition("\n")[0]
        others = [f"a query for nothing number {number}" for number in range(9)]
        return Reply(text=json.dumps({"queries": [after[history], *others]}))

    return ScriptedModel(answer, name=name)


def test_replies_that_are_cut_short_or_without_queries_are_counted(tmp_path):
    replies = [
        Reply(text='{"queries": ["pot", "kite", "lan', finish="length"),
        Reply(text='{"queries": ["pot"]}'),
        Reply(text="I would rather not."),
        Reply(text="", finish="refused"),
    ]

    def answer(request):
        return replies[len(request.messages[0].content) % 4]

    result = ran(tmp_path, ["horizon_query"], ScriptedModel(answer, name="short"))
    [task] = finished(result, "short")
    summary = task.summary
    missing = summary.metrics["recall_10"].missing
    assert {"generate/no_list", "generate/refused"} == set(missing)
    assert summary.counts["cut replies"] > 0
    n = summary.metrics["recall_10"].n
    assert summary.counts["fewer queries than asked for"] == n
    assert summary.metrics["recall_10_whole"].n == 0
    report = main([task], None)
    assert [row[2] for row in report.sheets[0].rows[:2]] == ["all", "by user"]
    assert any("cut replies" in note and "no_list" in note for note in report.sheets[0].notes)


def test_a_case_of_task_2_is_small_beside_its_prompt(tmp_path):
    """With ten queries of sixty characters; the titles of the history are the prompt's."""

    def answer(_):
        text = "a cast iron skillet for camping that lasts for years {:>6}"
        return json.dumps({"queries": [text.format(number) for number in range(10)]})

    result = ran(tmp_path, ["horizon_query"], ScriptedModel(answer, name="long"), limit=2)
    [task] = finished(result, "long")
    folder = task.path / task.entry.folder
    sizes = {}
    for file in ("1-generate.jsonl", "2-retrieve.jsonl", "scores.jsonl"):
        for line in (folder / file).read_text("utf-8").splitlines():
            found = json.loads(line)
            prompt = found.get("item", {}).get("history", [])
            if file.startswith("1"):
                prompt = [prompt, [one["content"] for one in found["calls"][0]["messages"]]]
            taken = len(line.encode()) - len(json.dumps(prompt, ensure_ascii=False).encode())
            sizes[found["id"]] = sizes.get(found["id"], 0) + taken
    cases = [size for name, size in sizes.items() if "/" in name]
    assert len(cases) == len(list(task.records("generate")))
    assert max(cases) <= MOST_BYTES, max(cases)


DATA = SimpleNamespace(items="a" * 64, folder=Path("DATA"))


def check(kind, **details):
    retriever = Identity(kind=kind, name="x", details=details)
    suits(DATA, Options(), {"candidate": Identity(kind="openai", name="y"), "retriever": retriever})


def test_only_a_catalogue_of_the_same_items_suits():
    check("catalogue", items="a" * 64)
    check("openai", recorded="digest")
    with pytest.raises(UsageError, match="no catalogue of the items") as error:
        check("catalogue", items="b" * 64)
    assert "harness horizon index --data DATA --embedder" in str(error.value)
    assert "an index of items aaaaaaaaaaaa" in str(error.value)
    with pytest.raises(UsageError, match="no catalogue of the items"):
        check("openai")


def test_an_index_of_another_catalogue_ends_the_run_before_a_question(tmp_path, monkeypatch):
    monkeypatch.setattr("harness_horizon.text.histories.items_digest", lambda _: "f" * 64)
    with pytest.raises(UsageError, match="no catalogue of the items") as error:
        harness.evaluate(
            "horizon_query", model="baseline", data="sample", output_path=tmp_path, quiet=True
        )
    assert "an index of items ffffffffffff" in str(error.value)
    assert not list(tmp_path.rglob("*.jsonl"))

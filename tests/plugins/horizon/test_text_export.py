"""The export of training data for language models, with its audit against all tests."""

import json
from pathlib import Path

import pytest
from builders.horizon import rows_of
from harness_horizon.recommenders.training_data import SAMPLE
from harness_horizon.text import sft_export
from harness_horizon.text.replies import QueriesReader
from harness_horizon.text.sft_export import FILE, Pair, Settings, pairs_of, read_pairs, run, traces

from harness import Parsed
from harness.base.errors import DataError, UsageError


def exported(folder, **options):
    report = run(Settings(data=Path("sample"), out=folder, **options))
    lines = (folder / FILE).read_text("ascii").splitlines()
    return report, [json.loads(line)["messages"] for line in lines]


def test_each_line_is_the_question_of_one_and_the_last_title_of_a_training_history(tmp_path):
    report, lines = exported(tmp_path)
    titles = {row["item"]: row["title"] for row in rows_of(SAMPLE / "items.parquet")}
    wanted = [
        (" <SEP> ".join(titles[item] for item in row["items"][:-1]), titles[row["items"][-1]])
        for row in sorted(rows_of(SAMPLE / "train.parquet"), key=lambda row: row["user_id"])
        if len(row["items"]) > 1
    ]
    found = []
    for user, assistant in lines:
        assert (user["role"], assistant["role"]) == ("user", "assistant")
        read = QueriesReader(field="queries", most=1)(assistant["content"])
        assert isinstance(read, Parsed)
        found.append((user["content"].split("\n")[1].removeprefix("History: "), read.value[0]))
    assert found == wanted
    counts, audit = report.sheets
    assert counts.rows[0][0] == len(lines)
    in_tests, in_training, shared = audit.rows[0]
    assert in_tests > 0 and in_training > len(lines) and shared == 0


def test_training_data_is_not_written_over(tmp_path):
    exported(tmp_path)
    with pytest.raises(UsageError, match="already contains training data"):
        exported(tmp_path)


HISTORY = (("u", 1), ("u", "a", None), ("u", 2), ("u", "b", None))


@pytest.mark.parametrize(
    ("tested", "left"),
    [({("u", 3), ("u", "c", None)}, 1), ({("v", 2)}, 1), ({("u", 2)}, 0),
     ({("u", "a", None)}, 0)],
)  # fmt: skip
def test_a_pair_with_what_a_test_asks_of_its_user_is_left_out_by_number_and_by_title(
    tested, left, tmp_path, monkeypatch
):
    pairs = [Pair(("a",), "b", frozenset(HISTORY))]
    monkeypatch.setattr(sft_export, "read_pairs", lambda *_: (pairs, tested))
    if left:
        report, lines = exported(tmp_path)
        assert len(lines) == left and report.sheets[0].rows == ((1, 0),)
        return
    with pytest.raises(DataError, match="give no training data"):
        exported(tmp_path)
    assert not (tmp_path / FILE).exists()


def test_the_pairs_of_a_user_are_the_last_items_and_their_traces():
    settings = Settings(data=Path("sample"), out=Path("out"), per_user=2, history_characters=10)
    found = list(pairs_of(settings, "u", [1, 2, 3], ["one\nlong title", "b", "c"]))
    assert [(one.history, one.title) for one in found] == [(("one long t",), "b"), (("b",), "c")]
    assert found[1].traces == {("u", 2), ("u", "b", None), ("u", 3), ("u", "c", None)}
    assert list(pairs_of(settings, "u", [1], ["alone"])) == []
    # The trace of a title is that of the same title in other spacing.
    own, other = traces("u", 1, " red\n pot "), traces("u", 2, "red pot")
    assert own[1] == other[1] == ("u", "red pot", None)


def test_a_leak_that_was_not_left_out_writes_nothing(tmp_path, monkeypatch):
    real = sft_export.audit
    monkeypatch.setattr(
        sft_export, "audit", lambda tested, found, *rest: real(tested, found | tested, *rest)
    )
    with pytest.raises(DataError, match="contains test items"):
        exported(tmp_path)
    assert not (tmp_path / FILE).exists()


def test_what_tests_ask_of_users_to_train_on_is_all_that_their_cases_hold():
    _, tested = read_pairs(Settings(data=Path("sample"), out=Path("out")), SAMPLE)
    trained = {row["user_id"] for row in rows_of(SAMPLE / "train.parquet")}
    wanted = {
        (row["user_id"], item)
        for name in ("validation", "cases-1a", "cases-1b", "cases-1c", "cases-1d")
        for row in rows_of(SAMPLE / f"{name}.parquet")
        if row["user_id"] in trained
        for item in row["items"][row["first"] :]
    }
    assert {one for one in tested if len(one) == 2} == wanted

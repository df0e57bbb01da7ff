"""The export of training data for language models, with its audit against all tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builders.horizon import rows_of
from harness_horizon.recommenders.training_data import SAMPLE
from harness_horizon.text import sft_export
from harness_horizon.text.replies import QueriesReader
from harness_horizon.text.sft_export import FILE, Pair, Settings, audited, run

from harness import Parsed
from harness.base.errors import DataError, UsageError


def exported(folder: Path, **options: Any) -> tuple[Any, list[Any]]:
    report = run(Settings(data=Path("sample"), out=folder, **options))
    lines = (folder / FILE).read_text("ascii").splitlines()
    return report, [json.loads(line)["messages"] for line in lines]


def test_each_line_is_the_question_of_one_and_the_last_title_of_a_training_history(
    tmp_path: Path,
) -> None:
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
    assert audit.rows[0] == ("held-out users", None, 0, 0)
    assert audit.rows[1][1] > 0 and audit.rows[1][3] == 0


def test_more_items_of_a_user_are_more_lines_and_a_short_prompt_has_the_latest(
    tmp_path: Path,
) -> None:
    _, one = exported(tmp_path / "one")
    _, three = exported(tmp_path / "three", per_user=3, history_characters=60)
    assert len(one) < len(three) <= 3 * len(one) + 600
    assert max(len(user["content"].split("\n")[1]) for user, _ in three) <= 60 + len("History: ")


def test_training_data_is_not_written_over(tmp_path: Path) -> None:
    exported(tmp_path)
    with pytest.raises(UsageError, match="already contains training data"):
        exported(tmp_path)


def pair(shown: set[int | str], tested: set[int | str]) -> Pair:
    return Pair(("a",), "b", frozenset(shown), frozenset(tested))


def test_a_pair_with_what_a_test_asks_for_is_left_out_by_number_and_by_title() -> None:
    assert pair({1, 2, "a", "b"}, {3, "c"}).fate == "written"
    assert pair({1, 2, "a", "b"}, {2, "x"}).fate == "contain what tests ask for"
    assert pair({1, 2, "a", "b"}, {9, "b"}).fate == "contain what tests ask for"
    assert Pair((), "b", frozenset({1}), frozenset()).fate == "without a history"


@pytest.mark.parametrize(("pairs", "held_out"), [([pair({1}, {1})], 0), ([pair({1}, {2})], 4)])
def test_the_audit_refuses_what_tests_ask_for_and_held_out_users(
    pairs: list[Pair], held_out: int
) -> None:
    with pytest.raises(DataError, match="so nothing was written"):
        audited(pairs, held_out)


def test_a_leak_that_was_not_left_out_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = sft_export.read_pairs

    def careless(settings: Settings, folder: Path) -> Any:
        pairs, _ = real(settings, folder)
        return pairs, 1

    monkeypatch.setattr(sft_export, "read_pairs", careless)
    with pytest.raises(DataError, match="1 held-out users"):
        exported(tmp_path)
    assert not (tmp_path / FILE).exists()

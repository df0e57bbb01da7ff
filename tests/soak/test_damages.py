"""Forty drawn damages of the answers of some role; conformance damages three in ten of each."""

from pathlib import Path

from soak.damages import break_answers


def test_whatever_a_role_answers_no_score_moves_without_a_count(tmp_path: Path) -> None:
    ended = break_answers(40, tmp_path)

    assert ended.total() == 40
    assert set(ended) == {"done", "too_many_failures"}

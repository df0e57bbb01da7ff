"""Twenty-five drawn damages of some role's answers; conformance damages three in ten of each."""

from pathlib import Path

from soak.damages import break_answers


def test_whatever_a_role_answers_no_score_moves_without_a_count(tmp_path: Path) -> None:
    ended = break_answers(25, tmp_path)

    assert ended.total() == 25
    assert set(ended) == {"done", "too_many_failures"}

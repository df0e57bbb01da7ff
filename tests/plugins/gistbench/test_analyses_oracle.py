"""How much of the oracle hangs on each model."""

import pytest
from builders.gistbench import judged
from harness_gistbench.analyses.compared_runs import TableOptions
from harness_gistbench.analyses.oracle_stability import run


@pytest.fixture
def runs(kept):
    """Three models; seven pairs in all.

    a: u1 1, 2, 3; u2 1, 5     b: u1 1, 2; u2 7     c: u1 1; u2 6
    """

    def verified(*categories):
        return tuple(judged(f"{id}", id, liked=2) for id in categories)

    return [
        kept("c", {"u1": verified(1), "u2": verified(6)}),
        kept("a", {"u1": verified(1, 2, 3), "u2": (*verified(1, 5), judged("x", 9, liked=1))}),
        kept("b", {"u1": verified(1, 2), "u2": (*verified(7), judged("y", None, liked=2))}),
    ]


def test_pairs_and_what_would_be_lost_without_each_model(runs):
    agreement, models, _ = run(runs, TableOptions()).sheets
    assert agreement.columns == ("models verifying", "pairs", "%")
    assert agreement.rows == (
        (1, 5, pytest.approx(500 / 7)),
        (2, 1, pytest.approx(100 / 7)),
        (3, 1, pytest.approx(100 / 7)),
        ("total", 7, 100.0),
    )
    assert models.columns == ("model", "verified", "sole provider", "% of the oracle")
    assert models.rows == (
        ("a", 5, 3, pytest.approx(300 / 7)),
        ("b", 3, 1, pytest.approx(100 / 7)),
        ("c", 2, 1, pytest.approx(100 / 7)),
    )


def test_runs_of_one_model_are_one_provider(runs, kept):
    found = {"u1": (judged("t", 1, liked=2), judged("u", 4, liked=2)), "u2": ()}
    again = kept("a", found, run="another-of-a", label="a another-of-a")
    agreement, models, _ = run([*runs, again], TableOptions()).sheets
    # The second run of a adds category 4 of u1, and takes no pair from its first.
    assert agreement.rows[:3] == ((1, 6, 75.0), (2, 1, 12.5), (3, 1, 12.5))
    assert agreement.notes == ("a pair is a user and a category; runs: 4, models: 3",)
    assert models.rows[0] == ("a, 2 runs", 6, 4, 50.0)


def test_nothing_verified_is_an_empty_oracle(kept):
    agreement, models, _ = run([kept("a", {"u1": ()})], TableOptions()).sheets
    assert agreement.rows == ((1, 0, None), ("total", 0, None))
    assert models.rows == (("a", 0, 0, None),)

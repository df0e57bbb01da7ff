"""Why interests were not verified."""

from builders.gistbench import judged
from harness_gistbench.analyses.compared_runs import TableOptions
from harness_gistbench.analyses.failure_modes import run
from harness_gistbench.records import Judged, Verification
from harness_gistbench.records import Options as Settings


def test_each_mode_is_a_share_of_all_unverified_interests(kept):
    found = {
        "u1": (
            judged("trains", 1, liked=2),  # verified
            judged("owls", 2, liked=1, watched=1),  # short of both
            judged("jazz", 3, liked=2, skipped=4),  # short of implicit, too negative
            judged("lakes", 4, watched=3, skipped=4),  # short of explicit, too negative
            judged("looms", 5, liked=2, watched=3, skipped=4),  # too negative alone
        ),
        "u2": (
            Judged(name="chess", cited=1, category=6, evidence_failure="verify/no_label"),
            judged("pots", None),  # short of both
        ),
    }
    sheet, people = run([kept("first", found)], TableOptions()).sheets
    assert sheet.columns == (
        "model",
        "interests",
        "no verdict",
        "unverified",
        "short of imp+ %",
        "short of exp+ %",
        "too negative %",
    )
    assert sheet.rows == (("first", 7, 1, 5, 60.0, 60.0, 60.0),)
    # Category 1 of u1 is verified and was not asked about; all that is mapped of u2 has no verdict.
    assert people.rows == (
        ("synthetic", "first", 2, 1, 0, "specificity/not_asked 1, verify/no_label 1"),
    )


def test_a_dataset_without_a_signal_is_not_short_of_it(kept):
    news = {"u1": (judged("trains", 1, liked=1), judged("owls", 2, liked=2, skipped=4))}
    videos = {
        "u1": (judged("trains", 1, liked=1), judged("owls", 2, liked=1, watched=3, skipped=5))
    }
    tasks = [
        kept(
            "first", news, dataset="gist_mind", signals=("explicit_positive", "implicit_negative")
        ),
        kept("first", videos, dataset="gist_synthetic"),
    ]
    pooled, mind, synthetic, _ = run(tasks, TableOptions()).sheets
    assert pooled.rows == (("first", 4, 0, 4, 25.0, 75.0, 50.0),)
    assert mind.title == "Failure modes, mind"
    assert mind.rows == (("first", 2, 0, 2, None, 50.0, 50.0),)
    assert synthetic.rows == (("first", 2, 0, 2, 50.0, 100.0, 50.0),)


def test_the_thresholds_of_the_run_decide(kept):
    found = {"u1": (judged("trains", 1, liked=2, watched=4),)}
    strict = Settings(verification=Verification(min_explicit_positive=3, min_implicit_positive=5,
                                                mixed_implicit_positive=5))  # fmt: skip
    as_usual, stricter = (
        run([kept("first", found, options=options)], TableOptions()).sheets[0]
        for options in (Settings(), strict)
    )
    assert as_usual.rows == (("first", 1, 0, 0, None, None, None),)
    assert stricter.rows == (("first", 1, 0, 1, 100.0, 100.0, 0.0),)

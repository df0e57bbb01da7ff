"""When too many items failed."""

from builders.runs import make_summary, make_task

from harness.contracts.outcomes import Broken, CallFailed, Unreadable, tag_of
from harness.pipeline.item_queue import FailureWatch, limits_of
from harness.pipeline.run import nothing_read
from harness.pipeline.settings import FailureLimits
from harness.scoring.summary import RoleUse, StageSummary


def watch(total, failures, **limits):
    watched = FailureWatch(limits=FailureLimits(**limits), total=total)
    for failure in failures:
        watched.failed(tag_of(failure), failure.cause)
    return watched


def test_one_bad_item_is_never_too_many():
    assert not watch(1, [CallFailed("timeout")], calls=0.0).too_many()


def test_the_limit_itself_is_allowed_and_one_more_is_not():
    assert not watch(20, [CallFailed("timeout")] * 2, calls=0.1).too_many()
    assert watch(20, [CallFailed("timeout")] * 3, calls=0.1).too_many()


def test_families_are_counted_apart():
    mixed = [CallFailed("timeout")] * 2 + [Unreadable("no_json")] * 2 + [Broken("KeyError")]
    assert not watch(20, mixed, calls=0.1, parsing=0.1, errors=0.0).too_many()


def test_a_stage_stops_early_only_with_many_failures_that_settle_it():
    assert not watch(100, [CallFailed("timeout")] * 19, calls=0.1).hopeless()
    assert watch(100, [CallFailed("timeout")] * 20, calls=0.1).hopeless()
    assert not watch(1000, [CallFailed("timeout")] * 100, calls=0.1).hopeless()


def test_the_error_names_causes_the_limit_and_both_ways_on():
    text = str(
        watch(10, [Unreadable("no_json")] * 6 + [Unreadable("schema")], parsing=0.5).error("t/name")
    )
    assert "t/name: too many items failed" in text
    assert "7 of 10 by parsing (no_json 6, schema 1)" in text
    assert "at most 50% (--max_failures parsing=0.5)" in text
    assert "repeat the command: as it is where no answer came" in text
    assert "with --retry_failures for the rest, or with a larger --max_failures" in text


def test_what_was_mostly_cut_is_not_to_be_asked_again_at_the_same_limit():
    mostly = [Unreadable("truncated")] * 6 + [Unreadable("no_json")]
    hint = watch(10, mostly, parsing=0.5).error("t/name").hint or ""
    assert "--retry_failures" not in hint
    assert "would be cut again at the same limit" in hint
    assert "a larger --max_failures" in hint


def test_a_stage_of_which_all_answers_were_cut_is_not_asked_again_at_the_same_limit():
    asked = RoleUse(
        calls=8, from_store=0, failed=8, prompt_tokens=8, completion_tokens=8, cached_tokens=0,
        reasoning_tokens=0, asked_schema=0, met_schema=0, rungs={},
    )  # fmt: skip
    stages = {
        name: StageSummary(items=8, done=0, failures=failures, roles=roles)
        for name, failures, roles in (
            ("cut", {"truncated": 8}, {"candidate": asked}),
            ("wrong", {"schema": 8}, {"candidate": asked}),
            ("silent", {"unread_check": 8}, {}),
        )
    }
    cut, wrong, silent = nothing_read(make_summary("t", stages=stages))
    assert "would be cut again" in cut.hint and "--retry_failures" not in cut.hint
    assert wrong.hint.endswith("with --retry_failures for the rest")
    # Nobody is asked in the third stage, so that its failures come from an earlier answer.
    assert silent.hint.endswith("repeat the command with another model in the role that answered")


def test_the_first_detail_of_the_family_is_shown():
    watched = FailureWatch(limits=FailureLimits(errors=0.0), total=2)
    watched.failed("broken", "KeyError", "Traceback …\nKeyError: 'shelf'\n")
    watched.failed("broken", "KeyError", "Traceback …\nKeyError: 'other'\n")
    text = str(watched.error("t/s"))
    assert "2 of 2 by errors (KeyError 2); the first: KeyError: 'shelf'" in text


def test_the_command_goes_before_the_task_and_the_task_before_what_is_usual():
    lenient = make_task(max_failures={"parsing": 1.0, "judging": 0.9})
    assert limits_of(lenient, {"judging": 0.0}) == FailureLimits(
        calls=0.1, parsing=1.0, judging=0.0, errors=0.05
    )


def test_an_unreadable_answer_that_is_not_scored_counts_as_a_judge_s() -> None:
    limits = FailureLimits(parsing=1.0, judging=0.2)
    candidate = FailureWatch(limits=limits, total=4)
    profiler = FailureWatch(limits=limits, total=4, scored=False)
    for watch in (candidate, profiler):
        for _ in range(2):
            watch.failed("unreadable", "empty", "no text")
    assert not candidate.too_many()
    assert profiler.too_many()
    assert "2 of 4 by judging (empty 2); the first: no text" in str(profiler.error("t/profile"))

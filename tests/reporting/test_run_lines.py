"""What `harness show` tells of rate limits."""

from harness.reporting.run_lines import rate_limited


def limits(**given):
    return {"ceiling": 64, "limit": 64, "lowest": 64, "cuts": 0, "pauses": 0, **given}


def test_models_that_were_slowed_have_a_line_for_all_sessions():
    sessions = [
        {"openai:a": limits(cuts=2, lowest=16), "openai:b\x1b": limits(cuts=1, lowest=32)},
        {"openai:a": limits(cuts=39, lowest=1, ceiling=8)},
    ]
    assert list(rate_limited(sessions)) == [
        "openai:a: slowed by rate limits (HTTP 429) 41 times, down to 1 of 64 requests in flight",
        "openai:b\\x1b: slowed by rate limits (HTTP 429) once, down to 32 of 64 requests in flight",
    ]
    assert (
        list(rate_limited([{}, {"openai:a": limits(pauses=3)}, {"other:b": {"learnt": {}}}])) == []
    )

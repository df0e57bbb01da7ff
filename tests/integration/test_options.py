"""What an option of a run does at the server."""

PEOPLE = 40
CANDIDATE, JUDGE = "candidate-model", "judge-model"


def test_one_engine_at_a_time_asks_the_candidate_everything_first(harness, serve):
    server = serve(harness, latency=0.01)
    both = "interests,interests_short"
    harness.run("--one-engine-at-a-time", "--reuse", "run", "--concurrency", "4", tasks=both).ok()
    order = [body["model"] for body in server.requests]
    candidate = order.count(CANDIDATE)
    assert candidate == 2 * PEOPLE
    assert set(order[:candidate]) == {CANDIDATE}
    assert set(order[candidate:]) == {JUDGE}

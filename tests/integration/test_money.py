"""What runs cost, told by a real server and worked out by hand, and runs that may cost so much."""

import pytest

from harness.testing.faults import Fault

PEOPLE = 40
CANDIDATE, JUDGE = "candidate-model", "judge-model"
PRICES = """
[prices."openai:candidate-model"]
input = 2
cached = 0.5
output = 10

[prices."openai:judge-*"]
input = 1
output = 5
"""
CACHED = {"prompt_tokens_details": {"cached_tokens": 400}}
CANDIDATE_TOKENS = {"prompt_tokens": 1000, "completion_tokens": 100, **CACHED}
JUDGE_TOKENS = {"prompt_tokens": 200, "completion_tokens": 10}
CANDIDATE_COST = 0.0024
"""600 tokens at 2, 400 at 0.5 and 100 at 10, for a million."""

JUDGE_COST = 0.00025
"""200 tokens at 1 and 10 at 5."""


@pytest.fixture
def prices(harness) -> str:
    (harness.folder / "prices.toml").write_text(PRICES)
    return "prices.toml"


def completion(harness, asked):
    """A chat completion with the tokens that the sums above are made of."""
    message = {"role": "assistant", "content": harness.answer(asked.body)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = CANDIDATE_TOKENS if asked.body["model"] == CANDIDATE else JUDGE_TOKENS
    return Fault(body={"id": "c", "choices": [choice], "usage": usage})


def judged(server):
    return sum(body["model"] == JUDGE for body in server.requests)


def costs(summary):
    return {
        role: use["cost"]
        for stage in summary["stages"].values()
        for role, use in stage["roles"].items()
    }


def about(amount):
    return pytest.approx(amount, abs=1e-9)


def test_each_role_is_told_with_what_it_cost_and_what_the_store_saved(harness, serve, prices):
    server = serve(harness, faults=lambda asked: completion(harness, asked))
    first = harness.run(*harness.pinned, "--limit", "10", "--prices", prices).ok()
    verdicts = judged(server)
    cost = costs(first.summary())
    assert cost["candidate"] == {
        "model": "openai:candidate-model", "currency": "USD", "priced": True, "asked": 10,
        "paid": about(10 * CANDIDATE_COST), "paid_unknown": 0,
        "reused": 0, "saved": 0.0, "saved_unknown": 0,
    }  # fmt: skip
    judge = cost["judge"]
    assert (judge["asked"], judge["paid"]) == (verdicts, about(verdicts * JUDGE_COST))
    assert first.json["costs"]["interests/name, candidate"] == cost["candidate"]
    assert harness.manifest()["sessions"][0]["costs"] == first.json["costs"]

    second = harness.run(*harness.pinned, "--limit", "20", "--prices", prices).ok()
    cost = costs(second.summary())
    assert (cost["candidate"]["asked"], cost["candidate"]["reused"]) == (10, 10)
    assert cost["candidate"]["paid"] == about(10 * CANDIDATE_COST)
    assert cost["candidate"]["saved"] == about(10 * CANDIDATE_COST)
    assert cost["judge"]["saved"] == about(verdicts * JUDGE_COST)
    assert second.json["costs"]["interests/name, candidate"] == cost["candidate"]

    shown = harness.here("show", second.json["folder"], "--costs").ok()
    assert "openai:candidate-model     10     0.0240      10      0.0240" in shown.out
    assert "paid, USD  saved, USD" in shown.out


def test_no_more_is_spent_than_allowed_and_a_larger_budget_goes_on(harness, serve, prices):
    server = serve(harness, faults=lambda asked: completion(harness, asked))
    done = harness.run("--prices", prices, "--max_cost", "0.05")
    assert done.code == 1
    assert "the budget of money is spent" in done.err
    assert done.json["summaries"] == []
    # A call may cost 1024 tokens at 10 and some 1,500 of the prompt at 2: some 0.0132 at most.
    spent = server.count * CANDIDATE_COST
    assert 0.033 < spent <= 0.05
    assert done.json["costs"]["interests/name, candidate"]["paid"] == about(spent)
    shown = harness.here("show", str(harness.folders[0]))
    assert f"in 1 session: paid {spent:.4f} USD for {server.count} calls" in shown.out
    first = server.count

    # The budget is that of one command, as that of calls is: what was spent before is not in it.
    rest = (PEOPLE - first) * CANDIDATE_COST
    done = harness.run("--prices", prices, "--max_cost", "1").ok()
    assert len(harness.folders) == 1
    assert all(count == 1 for count in server.counts.values())
    assert done.json["costs"]["interests/name, candidate"]["paid"] == about(rest)
    # The summary tells what its records cost, whichever session made them.
    assert costs(done.summary())["candidate"]["paid"] == about(PEOPLE * CANDIDATE_COST)
    total = PEOPLE * CANDIDATE_COST + judged(server) * JUDGE_COST
    shown = harness.here("show", str(harness.folders[0]))
    assert f"in 2 sessions: paid {total:.4f} USD for {server.count} calls" in shown.out


@pytest.mark.parametrize("dry", [(), ("--dry_run",)])
def test_a_budget_of_money_needs_every_price_before_anything_is_asked(harness, serve, dry):
    server = serve(harness)
    done = harness.run("--max_cost", "1", *dry)
    assert done.code == 2
    assert "no price of openai:candidate-model, openai:judge-model" in done.err
    (harness.folder / "some.toml").write_text(PRICES.split("\n\n", maxsplit=1)[0])
    done = harness.run("--max_cost", "1", "--prices", "some.toml", *dry)
    assert done.code == 2
    assert "some.toml: --max_cost needs a price for every model" in done.err
    assert "no price of openai:judge-model" in done.err
    assert server.count == 0
    assert not (harness.folder / "runs").exists()


def test_a_run_without_prices_is_priced_afterwards(harness, serve, prices):
    serve(harness, faults=lambda asked: completion(harness, asked))
    done = harness.run("--limit", "10")
    assert costs(done.summary()) == {"candidate": None, "judge": None}
    run = str(harness.folders[0])
    before = harness.files(harness.folders[0])
    assert "USD" not in harness.here("show", run).out
    shown = harness.here("show", run, "--prices", prices, "--json")
    (summary,) = shown.json["summaries"]
    assert costs(summary)["candidate"]["paid"] == about(10 * CANDIDATE_COST)
    (session,) = shown.json["sessions"]
    assert session["costs"]["interests/name, candidate"] == costs(summary)["candidate"]
    assert harness.files(harness.folders[0]) == before

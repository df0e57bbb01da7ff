from textwrap import dedent

from builders.texts import lines_on
from msgspec.structs import replace

from harness.calls.pricing import Price
from harness.contracts.model import Message
from harness.pipeline.forecast import (
    ExpectedCost,
    Forecast,
    RoleForecast,
    StageForecast,
    expected_cost,
)
from harness.reporting.forecast_tables import forecast_rows, print_forecast

CANDIDATE = RoleForecast(
    role="candidate", label="openai:gpt", calls=40, prompt_tokens=12_960,
    most_completion_tokens=40_960,
    first_prompt=(
        Message("system", "You look for interests."),
        Message("user", "1. [liked] Owls at night\n\nWhat is this person interested in?"),
    ),
)  # fmt: skip
JUDGE = RoleForecast(
    role="judge", label="openai:llama", calls=1200, prompt_tokens=0, most_completion_tokens=900,
    first_prompt=(Message("user", "Somebody claims: owls."),),
)  # fmt: skip
NAME = StageForecast(
    task="interests", stage="name", items=40, exact=True, least_calls=40, most_calls=120,
    roles=(CANDIDATE,),
)  # fmt: skip
SUPPORT = StageForecast(
    task="interests", stage="support", items=1200, exact=False, least_calls=1200,
    most_calls=1200, roles=(JUDGE,),
)  # fmt: skip
FORECAST = Forecast(
    stages=(NAME, SUPPORT),
    rehearsed_users=5,
    assumptions=("every answer read at once", "about 4 characters a token"),
)


def printed(forecast, *, width=80):
    plain = {"markup": False, "highlight": False, "emoji": False}
    return lines_on(lambda console: print_forecast(forecast, console), width=width, **plain)


def test_every_prompt_and_the_calls_to_expect_are_printed():
    assert "\n".join(printed(FORECAST, width=84)) == dedent("""\
── interests, name: candidate (openai:gpt) ──
[system]
You look for interests.
[user]
1. [liked] Owls at night

What is this person interested in?
── interests, support: judge (openai:llama) ──
[user]
Somebody claims: owls.
── calls to expect; no model was asked ──
task, stage, role            items   calls          bounds  tokens in  out, at most
───────────────────────────────────────────────────────────────────────────────────
interests, name, candidate      40     ~40       40 to 120     ~13.0k         41.0k
interests, support, judge   ~1,200  ~1,200  1,200 to 1,200         ~0           900
in total ~1,240 calls (1,240 to 1,320), ~13.0k tokens in, at most 41.9k out
estimated from:
  every answer read at once
  about 4 characters a token""")


def rows_of(*stages):
    shown = printed(replace(FORECAST, stages=stages), width=100)
    lines = [" ".join(line.split()) for line in shown]
    first = next(number for number, line in enumerate(lines) if line.startswith("───"))
    return lines[first + 1 : lines.index("estimated from:")]


def test_stages_with_several_roles_by_rule_and_unreached_have_rows_of_their_own():
    both = replace(SUPPORT, roles=(JUDGE, replace(JUDGE, role="profiler", calls=900)))
    assert rows_of(both) == [
        "interests, support ~1,200 ~2,100 1,200 to 1,200",
        "interests, support, judge ~1,200 ~0 900",
        "interests, support, profiler ~900 ~0 900",
        "in total ~2,100 calls (1,200 to 1,200), ~0 tokens in, at most 1.8k out",
    ]  # fmt: skip
    by_rule = replace(SUPPORT, roles=(), least_calls=0, most_calls=0)
    assert rows_of(by_rule) == ["interests, support, by rule ~1,200 0 0 0 0"]
    unreached = replace(
        SUPPORT, items=None, least_calls=0, most_calls=0,
        roles=(replace(JUDGE, calls=0, most_completion_tokens=0, first_prompt=()),),
    )  # fmt: skip
    assert rows_of(NAME, unreached)[1:] == [
        "interests, support, judge unknown unknown unknown unknown unknown",
        "in total ~40 calls (40 to 120), ~13.0k tokens in, at most 41.0k out",
        "not in the total: interests, support, as the rehearsal has no items for it",
    ]
    assert printed(replace(FORECAST, stages=(unreached,)))[:2] == [
        "── interests, support: judge (openai:llama) ──",
        "no prompt: no item of the rehearsal reached this stage",
    ]


def test_what_is_looked_up_is_in_no_sum():
    found = replace(JUDGE, role="retriever", calls=2625, most_completion_tokens=0, writes=False)
    looked_up = replace(SUPPORT, least_calls=2625, most_calls=2625, roles=(found,))
    assert rows_of(NAME, looked_up)[1:] == [
        "interests, support, retriever ~1,200 ~2,625 2,625 to 2,625 ~0 0",
        "in total ~40 calls (40 to 120), ~13.0k tokens in, at most 41.0k out",
        "not in the total: ~2,625 calls of retriever, which looks its answers up",
    ]
    rows = forecast_rows([("m", 2, replace(FORECAST, stages=(NAME, looked_up)))])
    assert [row.calls for row in rows] == [80]


def test_what_could_steer_a_terminal_is_shown_in_prompts_and_names():
    evil = "\x1b[2Jback\u202ewards [bold red]x[/] :smile:"
    shown = "\\x1b[2Jback\\u202ewards [bold red]x[/] :smile:"
    role = replace(
        CANDIDATE, role=evil, label=evil, first_prompt=(Message("user", f"a\n{evil}\nb"),)
    )
    stage = replace(NAME, task=evil, stage=evil, roles=(role,))
    lines = printed(replace(FORECAST, stages=(stage,)), width=300)
    assert f" {shown}, {shown}: {shown} ({shown}) " in lines[0]
    assert lines[1:5] == ["[user]", "a", shown, "b"]
    assert any(line.startswith(f"{shown}, {shown}, {shown} ") for line in lines[5:])
    assert not any("\x1b" in line or "\u202e" in line for line in lines)


def test_costs_stand_beside_the_calls_and_what_is_unknown_says_so():
    cost = ExpectedCost(at_most=2.5, least=0.01, most=7.5)
    dear = replace(NAME, roles=(replace(CANDIDATE, cost=cost),))
    priced = replace(FORECAST, stages=(dear, SUPPORT), currency="EUR", max_cost=3.0)
    lines = printed(priced, width=120)
    name = next(line for line in lines if line.startswith("interests, name, candidate"))
    assert name.endswith("2.50  0.0100 to 7.50")
    support = next(line for line in lines if line.startswith("interests, support, judge"))
    assert support.split()[-2:] == ["unknown", "unknown"]
    assert (
        "in total at most 2.50 EUR for the expected calls, between 0.0100 and 7.50 EUR by the "
        "bounds; without the 1 marked as unknown"
    ) in " ".join(lines)
    assert "--max_cost 3 may not be enough for the expected calls" in lines
    known = replace(priced, stages=(dear,))
    assert "--max_cost 3 is enough for the expected calls" in printed(known, width=120)


def test_a_cost_is_carried_over_to_the_fewest_and_the_most_calls():
    price = Price(input=2.0, output=10.0, cached=0.5)
    asked = replace(CANDIDATE, calls=40, prompt_tokens=10_000, most_completion_tokens=4000)
    # 10,000 at 2 and 4,000 at 10; half of the prompts at 0.5; one and a half times the most.
    found = expected_cost(price, asked, least=20, most=60)
    assert found == ExpectedCost(at_most=0.06, least=0.0025, most=0.09)
    assert expected_cost(None, asked, least=20, most=60) is None
    none = replace(CANDIDATE, calls=0, prompt_tokens=0, most_completion_tokens=0)
    assert expected_cost(price, none, least=0, most=60) is None
    free = ExpectedCost(at_most=0.0, least=0.0, most=0.0)
    assert expected_cost(None, none, least=0, most=0) == free

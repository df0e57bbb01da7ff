"""The baseline answers with registered respondents and is known by their versions."""

import pluggy
import pytest
from builders.requests import make_request
from harness_models.baseline import BaselineModel

from harness.contracts.model import CallError, Message, Request, Sampling, Topic
from harness.registry import Origin, Plugins, RespondentRegistration


def echo(variables, chance):
    return f"{variables['question']} {chance.random()}"


ECHO = ("ask", "default", echo, 1)


def plugins(*given):
    """Plugins whose respondents answer `quiz`'s prompt for the candidate: (prompt, name, …)."""
    plugins = Plugins(manager=pluggy.PluginManager("harness"))
    origin = Origin(plugin="quiz", distribution="quiz 1.0", module="quiz.plugin", package=None)
    of = {"origin": origin, "benchmark": "quiz", "role": "candidate"}
    for prompt, name, respond, version in given:
        plugins.respondents.add(
            RespondentRegistration(
                name=name, factory=lambda respond=respond: respond, prompt=prompt, version=version,
                **of,
            )
        )  # fmt: skip
    return plugins


def model(*given, name="default"):
    return BaselineModel(name=name, concurrency=8, plugins=plugins(*given))


def request(prompt="ask", question="why?", seed=0):
    about = {"benchmark": "quiz", "stage": "ask", "role": "candidate"}
    return Request(
        messages=(Message("user", question),),
        sampling=Sampling(),
        seed=seed,
        topic=Topic(prompt=prompt, variables={"question": question}, **about),
    )


async def test_it_answers_by_topic_and_the_same_each_time():
    baseline = model(ECHO)
    await baseline.open()
    first = await baseline.ask(request())
    assert first.text.startswith("why? 0.")
    assert first.finish == "stop"
    assert await model(ECHO).ask(request()) == first
    assert await baseline.ask(request(seed=1)) != first
    assert (await baseline.ask(request(question="who?"))).text.split()[1] != first.text.split()[1]
    await baseline.close()
    silent = ("ask", "silent", lambda variables, chance: "-", 4)
    assert (await model(ECHO, silent, name="silent").ask(request())).text == "-"


def test_its_identity_holds_the_versions_of_its_respondents():
    identity = model(ECHO, ("more", "default", echo, 2)).identity
    assert (identity.kind, identity.name, identity.scope) == ("baseline", "default", "call")
    assert identity.details == {"quiz/ask/candidate": 1, "quiz/more/candidate": 2}
    assert model(("ask", "default", echo, 3)).identity.details == {"quiz/ask/candidate": 3}
    assert model(ECHO).occupies is None


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (request(prompt="aks"), ("'aks'", "'candidate'", "'quiz'", "ask.candidate")),
        (make_request("x"), ("topic",)),
    ],
)
async def test_a_missing_respondent_or_topic_ends_the_run_and_names_those_there(asked, said):
    with pytest.raises(CallError) as caught:
        await model(ECHO).ask(asked)
    assert caught.value.fatal
    assert [part for part in said if part not in caught.value.detail] == []


@pytest.mark.parametrize(
    ("respond", "said"),
    [(lambda variables, chance: 1 / 0, "ZeroDivisionError"), (lambda variables, chance: 7, "int")],
)
async def test_a_respondent_that_fails_costs_its_sample_only(respond, said):
    with pytest.raises(CallError, match=said) as caught:
        await model(("ask", "default", respond, 1)).ask(request())
    assert caught.value.cause == "bad_response"
    assert not caught.value.fatal
    assert not caught.value.retryable


async def test_a_name_that_is_registered_twice_concerns_its_own_prompt_only():
    baseline = model(ECHO, ("more", "default", echo, 1), ("more", "default", echo, 2))
    assert baseline.identity.details == {"quiz/ask/candidate": 1}
    assert (await baseline.ask(request())).text
    with pytest.raises(CallError, match="more than once"):
        await baseline.ask(request(prompt="more"))

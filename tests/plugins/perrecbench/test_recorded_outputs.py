"""Recorded answers of published models against the published table, on the labels there are."""

import gzip
import json

import numpy as np
import pytest
from builders.records import make_records
from harness_perrecbench.metrics import METRICS, score
from harness_perrecbench.ranking import ranks_of_order
from harness_perrecbench.records import (
    Compared,
    Group,
    Member,
    Options,
    Ranked,
    Rated,
    Single,
    Thing,
)

from harness.contracts.outcomes import Unreadable
from harness.contracts.task import IntervalSpec
from harness.scoring.aggregate import Columns, sound

pytestmark = pytest.mark.real_data

EASY = {
    "Llama-3.1-8B-Instruct": (-0.27, 0.25, 0.30),
    "gemma-2-9b-it": (0.13, 0.23, 0.25),
    "Qwen2.5-7B-Instruct": (-0.10, 0.17, 0.16),
    "Ministral-8B-Instruct-2410": (-0.04, 0.02, 0.09),
    "Mistral-Nemo-Instruct-2407": (-0.11, 0.14, 0.37),
    "Qwen2.5-14B-Instruct": (0.09, 0.23, 0.17),
    "gemma-2-27b-it": (0.21, 0.15, 0.15),
    "mistralai_Mixtral-8x22B-Instruct-v0.1": (-0.02, 0.25, 0.35),
    "Qwen2.5-32B-Instruct": (0.21, 0.26, 0.35),
    "Qwen_Qwen2.5-Coder-32B-Instruct": (0.04, 0.26, 0.12),
    "Qwen_Qwen2.5-72B-Instruct-Turbo": (0.09, 0.27, 0.24),
    "meta-llama_Meta-Llama-3.1-70B-Instruct-Turbo": (0.09, 0.31, 0.32),
    "mistral-large-2411": (0.19, 0.31, 0.33),
    "meta-llama_Meta-Llama-3.1-405B-Instruct-Turbo": (0.14, 0.31, 0.38),
    "deepseek-chat": (0.23, 0.21, 0.23),
    "claude-3-5-haiku-20241022": (0.21, 0.27, 0.32),
    "claude-3-5-sonnet-20241022": (0.27, 0.34, 0.31),
    "gpt-4o-mini-2024-07-18": (0.20, 0.31, 0.41),
    "gpt-4o-2024-11-20": (0.25, 0.29, 0.27),
}
"""The easy columns of Table 1, pointwise, pairwise, listwise, by the recorded models' names."""

WAYS = ("point", "pair", "list")

UNREADABLE = "format_not_correct"
ANY = Thing(title="any")


def lines(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def make_group(item, averages, ranks):
    members = tuple(
        Member(id=str(place), average=float(average), common=5.0, shown=(), rank=rank)
        for place, (average, rank) in enumerate(zip(averages, ranks, strict=True), start=1)
    )
    return Group(id=item, user=item, query=ANY, members=members)


@pytest.fixture(scope="module")
def orders(real_data):
    """The true orders of the easy groups that have one."""
    labels = (real_data / "perrecbench/labels/labels-easy.jsonl").read_text(encoding="utf-8")
    return {one["item"]: one["order"] for one in map(json.loads, labels.splitlines())}


@pytest.fixture(scope="module")
def groups(real_data, orders):
    """The recorded easy groups, 130 of them with true ranks."""
    return {
        one["item"]: make_group(
            one["item"],
            [user["avg"] for user in one["users"]],
            ranks_of_order(orders[one["item"]]) if one["item"] in orders else (None, None),
        )
        for one in lines(real_data / "perrecbench/groups-easy.jsonl.gz")
    }


@pytest.fixture(scope="module")
def held_out(real_data):
    """The labelled held-out easy groups."""
    return [
        make_group(str(number), [user["avg"] for user in one["users"]], one["rank_vector"])
        for number, one in enumerate(lines(real_data / "perrecbench/heldout-easy.jsonl.gz"))
    ]


@pytest.fixture(scope="module")
def outputs(real_data):
    """What each recorded model answered, by model, way of asking and item."""
    with gzip.open(real_data / "perrecbench/outputs/parsed-outputs.json.gz") as file:
        return json.load(file)


@pytest.fixture(scope="module")
def scored(groups, outputs):
    """The metrics of each recorded model, by model and way of asking."""
    return {
        (model, way): summary(stage_records(way, said[f"easy-{way}"], groups))
        for model, said in outputs.items()
        for way in WAYS
    }


def summary(records, draws=100):
    columns = Columns(METRICS, map(sound, score(records, Options())))
    return columns.results(interval=IntervalSpec(draws=draws), seed=0, task="perrec_easy")


def stage_records(way, said, groups):
    stage = {"point": "rate", "pair": "compare", "list": "rank"}[way]
    made = _ratings if way == "point" else _orders
    pairs = [pair for item, group in groups.items() for pair in made(group, said[item][0], way)]
    return {stage: make_records(pairs, stage=stage)}


def _ratings(group, ratings, way):
    for place, (member, rating) in enumerate(zip(group.members, ratings, strict=True), start=1):
        single = Single(
            id=f"{group.id}/{place}", user=group.user, query=ANY, member=member, place=place, of=2
        )
        yield single, failed() if rating == UNREADABLE else Rated(rating=rating, answers=())


def _orders(group, answer, way):
    (order,) = answer
    if order == UNREADABLE:
        yield group, failed()
    elif way == "list":
        yield group, Ranked(order=tuple(order), answers=())
    else:
        yield group, Compared(order=order, ranks=ranks_of_order(order), comparisons=())


def failed():
    return Unreadable("no_json")


@pytest.mark.parametrize("metric", ["ptc", "ptc_published"])
@pytest.mark.parametrize(("way", "least"), [("point", 0.95), ("pair", 0.94), ("list", 0.88)])
def test_taus_of_recorded_answers_go_with_the_published_column(scored, way, least, metric):
    published = [columns[WAYS.index(way)] for columns in EASY.values()]

    ours = [scored[model, way][metric].value for model in EASY]

    assert np.corrcoef(ours, published)[0, 1] >= least


@pytest.mark.parametrize("way", ["pair", "list"])
def test_the_tau_of_every_recorded_model_is_what_its_orders_say(scored, outputs, orders, way):
    assert len(outputs) == 34
    for model, said in outputs.items():
        answers = [(said[f"easy-{way}"][item][0][0], order) for item, order in orders.items()]
        readable = [answer == order for answer, order in answers if answer != UNREADABLE]
        found = scored[model, way]["ptc"]

        assert found.value == pytest.approx(sum(2 * right - 1 for right in readable) / 130), model
        assert (found.n, sum(found.missing.values())) == (len(readable), 130 - len(readable))


def test_an_order_of_averages_beats_every_published_model_and_fails_on_held_out_groups(
    groups, held_out
):
    test, elsewhere = (
        summary(stage_records("list", {one: [[[1, 2]]] for one in each}, each), draws=2000)[
            "higher_average_first"
        ]
        for each in (groups, by_id(held_out))
    )

    assert test.n == 130
    assert test.value == pytest.approx(0.615, abs=5e-4)
    assert half_width(test) == pytest.approx(0.135, abs=0.01)
    assert test.value - half_width(test) > max(max(row) for row in EASY.values())
    assert elsewhere.n == 463
    assert elsewhere.value == pytest.approx(-0.166, abs=5e-4)
    assert half_width(elsewhere) == pytest.approx(0.09, abs=0.005)


def by_id(groups):
    return {one.id: one for one in groups}


def half_width(result):
    low, high = result.interval
    return (high - low) / 2

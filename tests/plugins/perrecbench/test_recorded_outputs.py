"""Recorded answers of published models, on the labels there are."""

import gzip
import json

import pytest
from builders.perrecbench import make_group, make_member
from builders.records import make_records
from harness_perrecbench.metrics import METRICS, score
from harness_perrecbench.paper import TABLES, WAYS
from harness_perrecbench.ranking import ranks_of_order
from harness_perrecbench.records import Options, Ranked

from harness.contracts.outcomes import Unreadable
from harness.contracts.task import IntervalSpec
from harness.scoring.aggregate import Columns, sound

pytestmark = pytest.mark.real_data

UNREADABLE = "format_not_correct"


def lines(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def group_of(item, averages, ranks):
    members = (
        make_member(str(place), float(average), rank=rank)
        for place, (average, rank) in enumerate(zip(averages, ranks, strict=True), start=1)
    )
    return make_group(*members, item=item)


@pytest.fixture(scope="module")
def orders(real_data):
    """The true orders of the easy groups that have one."""
    labels = (real_data / "perrecbench/labels/labels-easy.jsonl").read_text(encoding="utf-8")
    return {one["item"]: one["order"] for one in map(json.loads, labels.splitlines())}


@pytest.fixture(scope="module")
def groups(real_data, orders):
    """The recorded easy groups, 130 of them with true ranks."""
    return {
        one["item"]: group_of(
            one["item"],
            [user["avg"] for user in one["users"]],
            ranks_of_order(orders[one["item"]]) if one["item"] in orders else (None, None),
        )
        for one in lines(real_data / "perrecbench/groups-easy.jsonl.gz")
    }


@pytest.fixture(scope="module")
def held_out(real_data):
    """The labelled held-out easy groups."""
    return {
        str(n): group_of(str(n), [user["avg"] for user in one["users"]], one["rank_vector"])
        for n, one in enumerate(lines(real_data / "perrecbench/heldout-easy.jsonl.gz"))
    }


@pytest.fixture(scope="module")
def outputs(real_data):
    """What each recorded model answered, by model, way of asking and item."""
    with gzip.open(real_data / "perrecbench/outputs/parsed-outputs.json.gz") as file:
        return json.load(file)


def summary(records, draws=100):
    columns = Columns(METRICS, map(sound, score(records, Options())))
    return columns.results(interval=IntervalSpec(draws=draws), seed=0, task="perrec_easy")


def ranked(answers, groups):
    """The records of the stage "rank", from the order of each group or that it was unreadable."""
    failed = Unreadable("no_json")
    pairs = (
        (groups[item], failed if order == UNREADABLE else Ranked(order=tuple(order), answers=()))
        for item, order in answers.items()
    )
    return {"rank": make_records(pairs, stage="rank")}


@pytest.mark.parametrize("way", ["pair", "list"])
def test_the_tau_of_every_recorded_model_is_what_its_orders_say(outputs, groups, orders, way):
    assert len(outputs) == 34
    for model, said in outputs.items():
        recorded = {item: said[f"easy-{way}"][item][0][0] for item in groups}
        right = [recorded[item] == order for item, order in orders.items()
                 if recorded[item] != UNREADABLE]  # fmt: skip
        found = summary(ranked(recorded, groups))["ptc"]

        assert found.value == pytest.approx(sum(2 * one - 1 for one in right) / 130), model
        assert (found.n, sum(found.missing.values())) == (len(right), 130 - len(right))


def test_an_order_of_averages_beats_published_models_but_on_held_out_groups(groups, held_out):
    test, elsewhere = (
        summary(ranked(dict.fromkeys(each, (1, 2)), each), draws=2000)["higher_average_first"]
        for each in (groups, held_out)
    )

    assert (test.n, test.value) == (130, pytest.approx(0.615, abs=5e-4))
    assert half_width(test) == pytest.approx(0.135, abs=0.01)
    published = [row[f"easy {ask}"] for row in TABLES.read("main").dicts() for ask in WAYS]
    assert test.value - half_width(test) > max(published)
    assert (elsewhere.n, elsewhere.value) == (463, pytest.approx(-0.166, abs=5e-4))
    assert half_width(elsewhere) == pytest.approx(0.09, abs=0.005)


def half_width(result):
    low, high = result.interval
    return (high - low) / 2

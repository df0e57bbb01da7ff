"""The order of averages on the recorded groups, beside the published models."""

import gzip
import json

import pytest
from builders.perrecbench import make_group, make_member
from builders.records import make_records
from harness_perrecbench.metrics import METRICS, score
from harness_perrecbench.paper import TABLES, WAYS
from harness_perrecbench.ranking import ranks_of_order
from harness_perrecbench.records import Options, Ranked

from harness.contracts.task import IntervalSpec
from harness.scoring.aggregate import Columns, sound


def rows_of(text):
    return [json.loads(line) for line in text.splitlines()]


def higher_average_first(groups, item_ranks):
    """The value over groups as they were recorded, and half the width of its interval."""
    records = []
    for item, (group, ranks) in enumerate(zip(groups, item_ranks, strict=True)):
        averages = [float(user["avg"]) for user in group["users"]]
        members = (
            make_member(str(place), average, rank=rank)
            for place, (average, rank) in enumerate(zip(averages, ranks, strict=True), start=1)
        )
        records.append((make_group(*members, item=str(item)), Ranked(order=(1, 2), answers=())))
    scores = score({"rank": make_records(records)}, Options())
    columns = Columns(METRICS, map(sound, scores))
    results = columns.results(interval=IntervalSpec(draws=2000), seed=0, task="perrec_easy")
    found = results["higher_average_first"]
    low, high = found.interval
    return found.n, found.value, (high - low) / 2


@pytest.mark.real_data
def test_an_order_of_averages_beats_published_models_but_on_held_out_groups(real_data):
    folder = real_data / "perrecbench"
    groups, held_out = (
        rows_of(gzip.decompress((folder / f"{name}-easy.jsonl.gz").read_bytes()))
        for name in ("groups", "heldout")
    )
    labels = rows_of((folder / "labels/labels-easy.jsonl").read_bytes())
    ranks = {one["item"]: ranks_of_order(one["order"]) for one in labels}
    test = higher_average_first(groups, [ranks.get(one["item"], (None, None)) for one in groups])
    half = pytest.approx(0.135, abs=0.01)
    assert test == (130, pytest.approx(0.615, abs=5e-4), half)
    published = [row[f"easy {ask}"] for row in TABLES.read("main").dicts() for ask in WAYS]
    assert test[1] - test[2] > max(published)
    elsewhere = higher_average_first(held_out, [one["rank_vector"] for one in held_out])
    half = pytest.approx(0.09, abs=0.005)
    assert elsewhere == (463, pytest.approx(-0.166, abs=5e-4), half)

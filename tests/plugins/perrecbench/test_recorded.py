"""Recorded prompts and answers of published models, on the labels there are."""

import gzip
import json
from pathlib import Path

import pytest
from builders.perrecbench import make_group, make_member
from builders.records import make_records
from harness_perrecbench.metrics import METRICS, score
from harness_perrecbench.questions import rank_variables, rate_variables
from harness_perrecbench.ranking import ranks_of_order
from harness_perrecbench.records import Options, Ranked

from harness.contracts.outcomes import Unreadable
from harness.contracts.task import IntervalSpec
from harness.prompts import Templates
from harness.scoring.aggregate import Columns, sound

TEMPLATES = Templates([Path(__file__).resolve().parents[3] / "prompts"])
pytestmark = pytest.mark.real_data


def user_text(prompt, variables):
    _, user = TEMPLATES.need("perrecbench", prompt, "candidate").render(variables)
    assert user.role == "user"
    return user.content


@pytest.mark.parametrize("shown", ["profile", "noprofile"])
@pytest.mark.parametrize(
    "what",
    [
        ("easy", "point", 400),
        ("easy", "list", 200),
        ("medium", "point", 600),
        ("medium", "list", 200),
    ],
    ids=str,
)
def test_every_recorded_prompt_is_reproduced_byte_for_byte(real_data, load_data, what, shown):
    (level, kind, number), folder = what, real_data / "perrecbench"
    packed = (folder / f"prompts/{level}-{kind}-{shown}.json.gz").read_bytes()
    recorded = json.loads(gzip.decompress(packed))
    # Without profile the recorded listwise prompts end as older ones do.
    options = (
        Options(profile="full") if shown == "profile" else Options(profile="none", tail="older")
    )
    data = load_data(folder, ask=f"{kind}wise", level=level, profile=options.profile)
    made = {}
    for single in data.singles:
        text = user_text("rate", rate_variables(single, options))
        made.setdefault(single.user, []).append(text)
    for group in data.groups:
        made[group.id] = [user_text("rank", rank_variables(group, options))]
    assert sum(map(len, made.values())) == number
    wanted = {item: sent[0] if kind == "point" else sent for item, sent in recorded.items()}
    differing = [item for item in wanted if made.get(item) != flat(wanted[item])]
    assert (differing, made.keys()) == ([], wanted.keys())


def flat(prompts):
    return [text for one in prompts for text in ([one] if isinstance(one, str) else one)]


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

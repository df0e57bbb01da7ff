"""Every recorded prompt, made again from the recorded groups."""

import gzip
import json
from pathlib import Path

import pytest
from harness_perrecbench.questions import rank_variables, rate_variables
from harness_perrecbench.records import Behaviour, Group, Member, Options, Single, Thing

from harness.prompts import Templates

TEMPLATES = Templates([Path(__file__).resolve().parents[3] / "prompts"])

pytestmark = pytest.mark.real_data


def unpacked(path):
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return stream.read()


def group_of(written):
    return Group(
        id=written["item"],
        user=written["item"],
        query=Thing(**written["query"]),
        members=tuple(
            Member(
                id=user["uid"],
                average=float(user["avg"]),
                common=float(user["common"]),
                profile=user["profile"],
                shown=tuple(
                    Behaviour(
                        title=one["title"], author=one.get("author"), rating=float(one["rating"])
                    )
                    for one in user["history"]
                ),
            )
            for user in written["users"]
        ),
    )


def user_text(prompt, variables):
    _, user = TEMPLATES.need("perrecbench", prompt, "candidate").render(variables)
    assert user.role == "user"
    return user.content


def pointwise(group, options):
    return [
        user_text(
            "rate",
            rate_variables(
                Single(
                    id=f"{group.id}/{place}",
                    user=group.id,
                    query=group.query,
                    member=member,
                    place=place,
                    of=len(group.members),
                ),
                options,
            ),
        )
        for place, member in enumerate(group.members, 1)
    ]


def listwise(group, options):
    return [user_text("rank", rank_variables(group, options))]


@pytest.mark.parametrize("shown", ["profile", "noprofile"])
@pytest.mark.parametrize(
    ("level", "kind", "number"),
    [
        ("easy", "point", 400),
        ("easy", "list", 200),
        ("medium", "point", 600),
        ("medium", "list", 200),
    ],
)
def test_every_recorded_prompt_is_reproduced_byte_for_byte(real_data, level, kind, number, shown):
    folder = real_data / "perrecbench"
    lines = unpacked(folder / f"groups-{level}.jsonl.gz").splitlines()
    groups = [group_of(json.loads(line)) for line in lines]
    recorded = json.loads(unpacked(folder / f"prompts/{level}-{kind}-{shown}.json.gz"))
    # Without profile the recorded listwise prompts end as older ones do.
    options = (
        Options(profile="full") if shown == "profile" else Options(profile="none", tail="older")
    )

    made = {
        group.id: (pointwise if kind == "point" else listwise)(group, options) for group in groups
    }

    assert sum(map(len, made.values())) == number
    wanted = {item: sent[0] if kind == "point" else sent for item, sent in recorded.items()}
    differing = [item for item in wanted if made.get(item) != flat(wanted[item])]
    assert (differing, made.keys()) == ([], wanted.keys())


def flat(prompts):
    return [text for one in prompts for text in ([one] if isinstance(one, str) else one)]

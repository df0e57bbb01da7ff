"""Every recorded prompt, made again from the recorded groups."""

import gzip
import json
from pathlib import Path

import pytest
from harness_perrecbench.questions import rank_variables, rate_variables
from harness_perrecbench.records import Options

from harness.prompts import Templates

TEMPLATES = Templates([Path(__file__).resolve().parents[4] / "prompts"])

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

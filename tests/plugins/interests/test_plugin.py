"""What the plugin registers, and that its tasks and prompts fit the code."""

from pathlib import Path

import msgspec
import yaml
from harness_interests import plugin
from harness_interests.benchmark import INTERESTS
from harness_interests.records import Options

from harness.prompts import Templates

ROOT = Path(__file__).parents[3]
TASKS = ROOT / "task_configs/interests"


def test_the_hooks_register_lazy_factories():
    benchmarks, respondents = {}, []
    plugin.register_benchmarks(lambda name, factory: benchmarks.update({name: factory}))
    plugin.register_respondents(lambda *where: respondents.append(where))
    assert benchmarks["interests"]() is INTERESTS
    ((*where, factory),) = respondents
    assert where == ["interests", "name", "candidate"]
    assert factory()({"history": [], "max_interests": 5}, None) == "[]"


def test_the_task_says_what_the_code_takes_as_usual():
    task = yaml.safe_load((TASKS / "interests.yaml").read_text())
    assert task["options"] == msgspec.to_builtins(Options())
    assert task["metrics"] == list(INTERESTS.metrics)
    assert INTERESTS.main == ("support",)


def test_the_candidate_reads_numbers_reactions_and_titles():
    template = Templates([ROOT / "prompts"]).get("interests", "name", "candidate")
    system, user = template.render(
        {
            "history": [
                {"number": 1, "title": "Rye <bread>", "liked": True},
                {"number": 2, "title": "Night trains", "liked": False},
            ],
            "max_interests": 4,
        }
    )
    assert (system.role, user.role) == ("system", "user")
    assert "\n\n1. [liked] Rye <bread>\n2. [skipped] Night trains\n\n" in user.content
    assert "at most 4 interests" in user.content


def test_the_judge_reads_the_interest_and_labelled_titles():
    template = Templates([ROOT / "prompts"]).get("interests", "support", "judge")
    _, user = template.render(
        {
            "subject": "baking",
            "options": ["Rye bread", "Honey cakes"],
            "labels": ["1", "2"],
            "choices": [("1", "Rye bread"), ("2", "Honey cakes")],
            "texts": [],
            "at_most": None,
        }
    )
    assert "interested in: baking\n" in user.content
    assert "\n\n1. Rye bread\n2. Honey cakes\n\n" in user.content

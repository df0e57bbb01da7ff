"""The variants of the nine tasks: each is asked as it says, and shows and hides what it must."""

from __future__ import annotations

import re

import pytest

from harness.testing import FaultyServer

WAYS = ("pointwise", "pairwise", "listwise")
VARIANTS = ("noprofile", "fewshot", "fewshot_noprofile", "sc", "cot", "strict")
TASKS = ",".join([*(f"perrec_medium_*_{one}" for one in VARIANTS), "perrec_*_pointwise_strict"])


@pytest.fixture(scope="module")
def variants(tmp_path_factory, perrecs, answers):
    """All variants in one run, by a model that knows the truth."""
    perrec = perrecs(tmp_path_factory.mktemp("variants"))
    with FaultyServer(answers.true) as server:
        perrec.url = server.url
        role = f"profiler=openai:base_url={server.url},model=p,revision=1"
        done = perrec.run(TASKS, "--role", role).ok()
    return perrec, done


def test_each_variant_of_each_task_reads_the_answers_of_who_knows_the_truth(variants):
    perrec, done = variants
    names = [f"perrec_medium_{way}_{one}" for way in WAYS for one in VARIANTS]
    names += ["perrec_easy_pointwise_strict", "perrec_hard_pointwise_strict"]
    assert perrec.of(done, "ptc") == dict.fromkeys(names, 1.0)


def test_strict_shows_nothing_that_came_later_nor_the_thing_itself(variants, true):
    (strict, strictly), (usual, usually, _) = variants, true

    def average(prompts):
        (mine,) = (one for one in prompts if re.search(r"^sh\w+ of u1f$", one, re.MULTILINE))
        return re.search(r"## User Average Rating\n(.*)", mine)[1]

    hard = strict.prompts(strictly, "perrec_hard_pointwise_strict")
    # 11 times 4 and 11 times 2, which is 3; with the 4.5 for the thing in question 70.5 / 23.
    assert average(usual.prompts(usually, "perrec_hard_pointwise")) == "3.1"
    assert average(hard) == "3.0"
    shown = re.compile(r"### Item Title\nKettle .*\n### User Rating")
    assert any(map(shown.search, usual.prompts(usually, "perrec_easy_pointwise")))
    assert not any(map(shown.search, strict.prompts(strictly, "perrec_easy_pointwise_strict")))
    # Published profiles know the whole history, so that strict ones are made anew of what was.
    assert all("The profile made of 22 things" in one for one in hard)


def test_the_bundled_sample_is_enough_for_every_variant_and_for_ratings(perrec):
    tasks = [f"perrec_easy_{way}_{one}" for way, one in zip(WAYS * 2, VARIANTS, strict=True)]
    done = perrec.harness.here(
        "--model", "baseline", "--role", "profiler=baseline", "--tasks",
        ",".join([*tasks, "perrec_easy_pairwise_shots5_k16", "perrec_rating_published"]),
        "--data", "sample", "--limit", "2", "--json",
    ).ok()  # fmt: skip
    assert len(done.json["summaries"]) == len(VARIANTS) + 2
    for summary in done.json["summaries"]:
        foremost = summary["metrics"]["mae" if "rating" in summary["task"] else "ptc"]
        assert (foremost["n"], foremost["missing"]) == (2, {}), summary["task"]

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]

RUN = ("harness", "run", "--json")
LIST = ("harness", "list")
CHECKS_OF_0_1_0 = "loads tasks prompts metrics baseline repeats shares resumes records failures"


@pytest.fixture(scope="module")
def user(environment, tmp_path_factory):
    """The environment with their plugin, in a copy of their folder."""
    home = tmp_path_factory.mktemp("home") / "third_party"
    shutil.copytree(Path(__file__).parents[1] / "third_party", home)
    with environment.with_package(home / "acme-borrowed"):
        yield dataclasses.replace(environment, elsewhere=home / "folder")


def numbers(said, *metrics):
    """By task the values of these metrics, from the JSON of a run."""
    return {
        one["task"]: tuple(one["metrics"][metric]["value"] for metric in metrics)
        for one in json.loads(said)["summaries"]
    }


def test_all_that_it_registers_is_found_and_its_tasks_and_theirs_validate(user):
    assert "acme alike" in user.said(*LIST, "plugins", "acme_borrowed", "--strict_plugins")
    for kind, name in (("models", "clerk"), ("judges", "careful"), ("embedders", "letters")):
        assert "acme_borrowed of acme-borrowed" in user.said(*LIST, kind, f"acme-{name}")
    assert user.said("harness", "validate", "acme_borrowed", "tasks/mine.yaml").count(": ok (") == 2


def test_the_run_of_their_settings_has_the_scores_by_hand_and_is_shown_and_analysed(user):
    """The judge wants a taste's word among the first two of a title: so of Ann's four cited books
    it keeps all but "A Quiet Murder". To Cid, who liked one murder, the clerk offers crows.
    """
    said = user.said(*RUN, "--name", "theirs", ACME_BORROWED_LOG="log")
    found = numbers(said, "kept", "grounded", "foresaw", "chance")
    kept = (3 / 4 + 1 / 4 + 2 / 3 + 1 / 2) / 4
    assert found["acme_borrowed"] == pytest.approx((kept, 3 / 4, 3 / 4, 1 / 2))
    assert found["mine"] == pytest.approx(((1 / 2 + 1 / 3 + 1 + 1) / 4, 1, 3 / 4, 1 / 2))
    assert (user.elsewhere / "log").read_text("utf-8").endswith(" done 0\n")
    assert "acme_borrowed / next / ann" in user.said("harness", "show", "theirs", "--sample", "ann")
    command = ("harness", "analyse", "borrowed-tastes", "theirs", "--task", "acme_borrowed")
    [tastes, _] = json.loads(user.said(*command, "--published", "--json"))["report"]["sheets"]
    shares = {taste: share for _, taste, _, share in tastes["rows"]}
    assert shares == pytest.approx({"garden": 100, "murder": 200 / 3, "sea": 200 / 3})
    user.said("harness", "report", "theirs", "-o", "report.html")
    assert "Tastes with enough" in (user.elsewhere / "report.html").read_text("utf-8")


def test_another_judge_their_group_and_a_matrix_that_is_scored_otherwise(user):
    judged = user.said(*RUN, "--tasks", "acme_borrowed", "--judge", "acme-careful:second")
    assert numbers(judged, "kept") == {"acme_borrowed": ((1 + 3 / 4 + 1 + 1 / 2) / 4,)}
    by_least = numbers(user.said(*RUN, "--tasks", "tag:by_least"), "grounded")
    assert by_least == {"borrowed_least1": (3 / 4,), "borrowed_least2": (0,)}
    scored = user.said("harness", "score", "latest", "--set", "least=2", "--json")
    [again] = json.loads(scored)["runs"]
    assert set(numbers(json.dumps(again), "grounded").values()) == {(0,)}
    assert "mean of 2" in user.said("harness", "run", "--tasks", "ours_and_theirs")


def test_the_tools(user):
    said = user.said("harness", "acme", "alike", "--titles", "titles.txt", "--json")
    rows = [(near, cosine) for _, near, cosine in json.loads(said)["report"]["sheets"][0]["rows"]]
    assert rows[0] == ("A Better Map", pytest.approx(1))  # each has two a and two e
    assert rows[2][1] == pytest.approx(12 / (21 * 16) ** 0.5)
    user.said("harness", "data", "acme-loans", "--out", "loans", "--readers", "2")
    said = user.said(*RUN, "--tasks", "acme_borrowed", "--data", "loans")
    assert numbers(said, "kept", "foresaw") == {"acme_borrowed": (1, None)}


def test_the_suite_twice_and_the_script(user):
    for ended in ("  done  ", "done, before"):
        said = user.said("harness", "suite", "nightly.yaml")
        assert "gate holds: acme_borrowed.kept>-1: narrow − clerk: +0.194" in said
        assert said.count(ended) >= 2
    lines = user.said("python", "script.py").splitlines()
    assert lines[0] == "done 0 0.5417"
    assert lines[-1] == "kept 0.1944"


def test_its_own_tests_and_the_checks_that_were_in_0_1_0_pass(user):
    tests = user.elsewhere.parent / "acme-borrowed" / "tests"
    command = ("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not promises")
    assert "2 passed" in user.said(*command, "--noconftest", str(tests))
    # Pins were hashes of syntax trees in 0.1.0: they are made anew once, with all versions kept.
    user.said(
        "python", "-m", "harness.testing.versions", "acme_borrowed", str(tests / "versions.json")
    )
    asked = {"checks": CHECKS_OF_0_1_0.split(), "versions": str(tests / "versions.json")}
    code = f"from harness.testing import check_plugin; check_plugin('acme_borrowed', **{asked})"
    user.said("python", "-c", code)

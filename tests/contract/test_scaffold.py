import json

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]

FORMS = {"acme-films": (), "acme-themes": ("--stages",)}


@pytest.fixture(scope="module", params=FORMS)
def written(request, environment, tmp_path_factory):
    """Environment, name and folder of a plugin that the installed command wrote; installed."""
    name, home = request.param, tmp_path_factory.mktemp("written")
    environment.said("harness", "new-plugin", name, *FORMS[name], "--into", str(home))
    project = home / name
    with environment.with_package(project):
        yield environment, name.replace("-", "_"), project


def test_it_runs_against_the_baseline(written):
    environment, name, _ = written
    said = environment.said(
        "harness", "--model", "baseline", *JUDGED.get(name, ()), "--tasks", name,
        "--data", "sample", "--json", "--output_path", f"{name}-runs",
    )  # fmt: skip
    [summary] = json.loads(said)["summaries"]
    values = {metric: result["value"] for metric, result in summary["metrics"].items()}
    assert values == pytest.approx(BY_HAND[name])


JUDGED = {"acme_themes": ("--judge", "lexical")}

# Of six choices the film that shares more words was taken five times. Of each person's three
# themes one goes with several titles: with three of four for two of them, with two for the third.
BY_HAND = {
    "acme_films": {"right": 5 / 6},
    "acme_themes": {"grounded": 1 / 3, "explained": (3 / 4 + 3 / 4 + 2 / 4) / 3},
}


def test_its_own_tests_pass_as_they_were_written(written):
    environment, _, project = written
    said = environment.said("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(project))
    assert " passed, 1 skipped" in said


def test_its_versions_are_pinned_by_the_command_that_its_readme_names(written):
    environment, name, project = written
    command = f"python -m harness.testing.versions {name} tests/versions.json"
    assert command in " ".join((project / "README.md").read_text("utf-8").split())
    file = project / "tests" / "versions.json"
    environment.said("python", "-m", "harness.testing.versions", name, str(file))
    test = ("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "versions")
    assert "1 passed" in environment.said(*test, str(project))
    file.write_text(file.read_text("utf-8").replace('"code": "', '"code": "0'), encoding="utf-8")
    failed = environment.run(*test, str(project))
    assert failed.returncode == 1
    assert "changed and is still version 1" in failed.stdout

"""Where task files and prompts are found."""

import sys
from pathlib import Path

from harness.base.resources import Bundle, first_party, package_bundle

ROOT = Path(__file__).resolve().parents[2]


def test_a_checkout_is_read_from_its_top_level_folders():
    assert first_party() == Bundle(
        "harness", ROOT / "task_configs", ROOT / "prompts", ROOT / "harness"
    )


def test_an_installed_harness_is_read_from_inside_its_package(site, monkeypatch):
    site.install(
        "installed", {}, {"harness/_bundled/prompts/a.j2": "", "harness/base/resources.py": ""}
    )
    installed = site.folder / "harness"
    monkeypatch.setattr("harness.base.resources.__file__", str(installed / "base/resources.py"))

    assert first_party() == Bundle("harness", None, installed / "_bundled/prompts", installed)


def test_a_package_carries_its_folders_inside_and_is_not_imported(site):
    site.install(
        "their-benchmark",
        {},
        {"theirs/__init__.py": "raise SystemExit", "theirs/task_configs/a.yaml": ""},
    )
    package = site.folder / "theirs"

    bundle = package_bundle("theirs.plugin")

    assert bundle == Bundle("theirs", package / "task_configs", None, package)
    assert "theirs" not in sys.modules


def test_folders_beside_a_package_count_in_a_checkout_only(site):
    site.install("theirs", {}, {"theirs/__init__.py": "", "prompts/a.j2": ""})
    assert package_bundle("theirs.plugin") is None

    (site.folder / "pyproject.toml").touch()
    assert package_bundle("theirs.plugin") == Bundle(
        "theirs", None, site.folder / "prompts", site.folder / "theirs"
    )
    assert package_bundle("no_such_package_anywhere.plugin") is None

"""The walk of CONTRIBUTING.md to a published benchmark, typed as it stands there."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]

PAGE = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
SECTION, PROMPT = "\n## Publish a benchmark in 30 minutes\n", "    $ "


def commands():
    section = PAGE.read_text("utf-8").partition(SECTION)[2].partition("\n## ")[0]
    lines = section.splitlines()
    return [line.removeprefix(PROMPT) for line in lines if line.startswith(PROMPT)]


def test_every_command_of_the_walk_ends_well(environment, tmp_path):
    own = replace(environment, elsewhere=tmp_path)
    walk = commands()
    assert [one.split()[1] for one in walk[:1]] == ["new-plugin"]
    for command in walk:
        program, *arguments = shlex.split(command)
        own.said(program, *arguments)
    project = tmp_path / "acme-moods"
    assert [file.suffix for file in sorted((project / "dist").iterdir())] == [".whl", ".gz"]
    assert "acme_moods" in (tmp_path / "moods.html").read_text("utf-8")
    own.said("python", "-m", "pip", "uninstall", "-qy", "acme-moods")

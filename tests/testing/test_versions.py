"""`python -m harness.testing.versions`: pins written, and what changed told."""

import json

import pytest
from builders.commands import Ended

from harness.testing.versions import main


@pytest.fixture
def pin(monkeypatch, capsys):
    """Pins as the command does, which the tests of the scaffold start; what it printed."""

    def pinned(plugin, file):
        monkeypatch.setattr("sys.argv", ["versions", plugin, str(file)])
        return Ended(main(), *capsys.readouterr())

    return pinned


def test_what_is_new_is_told_once(tmp_path, pin):
    file = tmp_path / "versions.json"
    first, second = pin("interests", file), pin("interests", file)
    assert first.out.splitlines() == [
        "respondents/interests/name/candidate/default is not pinned: pinned",
        "stages of interests/name is not pinned: pinned",
        "stages of interests/support is not pinned: pinned",
    ]
    assert (second.code, second.out, second.err) == (0, "", "")
    assert json.loads(file.read_text())["stages of interests"]["name"]["version"] == 1

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


def test_changed_code_under_an_old_version_is_told(tmp_path, pin):
    file = tmp_path / "versions.json"
    pin("interests", file)
    pins = json.loads(file.read_text())
    pins["stages of interests"]["name"]["code"] = "another"
    file.write_text(json.dumps(pins))
    [line] = pin("interests", file).out.splitlines()
    assert line.startswith("stages of interests/name changed and is still version 1: raise its")
    assert line.endswith("keep the version. Pinned")

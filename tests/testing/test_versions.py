"""`python -m harness.testing.versions`: pins written, and what is new told."""

import json

from harness.testing.versions import main


def test_what_is_new_is_told_once(tmp_path, monkeypatch, capsys):
    file = tmp_path / "versions.json"
    monkeypatch.setattr("sys.argv", ["versions", "interests", str(file)])
    main()
    assert capsys.readouterr().out.splitlines() == [
        "respondents/interests/name/candidate/default is not pinned: pinned",
        "stages of interests/name is not pinned: pinned",
        "stages of interests/support is not pinned: pinned",
    ]
    assert (main(), *capsys.readouterr()) == (0, "", "")
    assert json.loads(file.read_text())["stages of interests"]["name"]["version"] == 1

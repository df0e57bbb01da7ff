"""What a run comes to whose engine does not give back what it held."""

import json

import pytest

from harness.base.errors import ModelError
from harness.cli.main import main
from harness.testing import ScriptedModel
from harness.testing.scripted import offered

NAMED = '[{"interest": "gardening", "items": [1, 2, 3, 4, 5, 6, 7, 8]}]'
HELD = "harness: scripted:m: the GPU's memory has not come back\n  to do:    wait for it\n"


class Held(ScriptedModel):
    """A model whose last word is an error."""

    occupies = "gpu"

    async def close(self):
        raise ModelError(
            "the GPU's memory has not come back", where="scripted:m", hint="wait for it"
        )


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """The exit code, the summaries and the errors of a run over this model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))

    def run(model, *more):
        with offered((model,)):
            code = main([
                "--tasks", "interests", "--data", "sample", "--limit", "4", "--model", model.spec,
                "--judge", "lexical", "--json", "--max_failures", "1", *more,
            ])  # fmt: skip
        said = capsys.readouterr()
        return code, json.loads(said.out)["summaries"], said.err

    return run


def test_what_was_answered_is_scored_and_the_error_told_beside_it(command):
    code, (summary,), told = command(Held(NAMED, name="m"))
    assert code == 1
    assert summary["stages"]["name"]["done"] == 4
    assert told == HELD
    model = ScriptedModel(NAMED, name="m")
    again, summaries, told = command(model)
    assert (again, summaries[0]["metrics"], told) == (0, summary["metrics"], "")
    assert model.count == 0


def test_what_stopped_the_run_is_told_first_and_not_lost(command):
    code, summaries, told = command(Held(NAMED, name="m"), "--max_calls", "1")
    assert (code, summaries) == (1, [])
    assert told.startswith("harness: the budget of calls is spent")
    assert told.endswith(HELD)

"""Which models a session may ask, and whose keys are looked for before anything is paid."""

from builders.commands import run_cli

GIVEN = ("--tasks", "interests", "--judge", "lexical", "--data", "sample", "--limit", "2")
KEYED = ("--model", "openai:m", "--model_args", "base_url=http://127.0.0.1:9/v1,api_key_env=ABSENT")


def test_models_whose_questions_are_written_down_need_no_key(tmp_path, own_cache):
    asked = run_cli("run", *KEYED, *GIVEN, folder=tmp_path)
    assert (asked.code, "ABSENT" in asked.err) == (2, True)
    out = ("--out", "q.jsonl")
    written = run_cli("batch", "write", *KEYED, *GIVEN, *out, folder=tmp_path)
    assert (written.code, len((tmp_path / "q.jsonl").read_text().splitlines())) == (0, 2)

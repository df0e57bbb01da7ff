"""Which models a session may ask, and whose keys are looked for before anything is paid."""

from builders.commands import run_cli

GIVEN = ("--tasks", "interests", "--judge", "lexical", "--data", "sample", "--limit", "2")
KEYED = ("--model", "openai:m", "--model_args", "base_url=http://127.0.0.1:9/v1,api_key_env=ABSENT")


def test_models_whose_questions_are_written_down_need_no_key(tmp_path, own_cache):
    asked = run_cli("run", *KEYED, *GIVEN, folder=tmp_path)
    assert (asked.code, "ABSENT" in asked.err) == (2, True)
    written = run_cli(*KEYED, *GIVEN, "--write_requests", "q", folder=tmp_path)
    lines = (tmp_path / "q" / "requests-1.jsonl").read_text().splitlines()
    assert (written.code, len(lines)) == (0, 2)

import json
import re
from contextlib import redirect_stdout
from typing import Any

import msgspec
import pytest
from builders.commands import Screen
from builders.runs import make_line, write_journal

from harness.cli.main import main
from harness.contracts.judge import Selected, Vote
from harness.contracts.model import Message
from harness.contracts.records import CallRecord, Done, Judged


def printable(text):
    return not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)


def test_results_and_what_is_not_finished(scored_run, shown):
    out = shown(str(scored_run.path))
    head = out.partition("\n")[0]
    assert "m-1, begun " in head and head.endswith(", killed")
    assert "task later: not finished: name" in out
    assert "2.000" in out
    assert "task toy" not in out


def test_an_old_summary_of_a_task_that_is_at_work_again_is_not_shown(scored_run, shown):
    scored_run.summary("later").write_bytes(scored_run.summary("toy").read_bytes())
    document: Any = json.loads(shown(str(scored_run.path), "--json"))
    assert (document["status"], document["at_work"]) == ("running", False)
    assert [each["status"] for each in document["sessions"]] == ["killed"]
    assert [each["task"] for each in document["summaries"]] == ["toy"]
    assert document["unfinished"] == {"later": ["name"]}
    document = json.loads(shown(str(scored_run.path), "--json", "--task", "later"))
    assert document["summaries"] == []


def test_failures_one_a_line_without_control_characters(kept_run, shown):
    out = shown(str(kept_run.path), "--failures")
    assert "toy/name  bob/1  user bob  no_json: no bracket in \\x1b]0;x\\x07it" in out
    assert "toy/name  cid/1  user cid  ValueError: ValueError: odd\\x1b[2J" in out
    assert "2 failures" in out
    assert "ann" not in out
    assert printable(out)
    assert shown(str(kept_run.path), "--failures", "--task", "later") == "no failures\n"
    every = shown(str(kept_run.path), "--samples", "--task", "toy")
    assert "toy/name  ann/1  user ann  done: " in every and printable(every)
    assert "toy/name  bob/1  user bob  no_json: no bracket" in every
    assert "3 samples; --sample ID shows everything about one" in every
    document: Any = json.loads(shown(str(kept_run.path), "--samples", "--task", "toy", "--json"))
    assert [each["id"] for each in document["samples"]] == ["bob/1", "ann/1", "cid/1"]


def test_costs_tell_what_an_unfinished_task_has_so_far(scored_run, shown):
    shown_rows = [line.split() for line in shown(str(scored_run.path), "--costs").splitlines()]
    assert ["toy/name", "3", "1", "2:", "ValueError", "1,", "no_json", "1"] in shown_rows
    assert ["later/name", "so", "far", "1", "1", "–"] in shown_rows


def test_where_a_run_comes_from_is_a_chapter(kept_run, shown):
    out = shown(str(kept_run.path), "--provenance")
    assert out.startswith(f"run {kept_run.path}: ")
    assert "\n\ncommand:\n    harness run --model " in out
    assert "\ntasks:\n  toy " in out and "\nmodels:\n  candidate" in out


def test_what_is_longer_than_the_terminal_goes_through_a_pager(kept_run, monkeypatch):
    def seen(lines, pager, code=0):
        monkeypatch.setenv("LINES", lines)
        monkeypatch.setattr("click.echo_via_pager", pager)
        with redirect_stdout(Screen()) as screen:
            assert main(["show", str(kept_run.path), "--samples"]) == code
        return screen.getvalue()

    def no_command(text):
        raise OSError("PAGER is a folder")

    def cut_off(*_):
        raise KeyboardInterrupt

    paged: list[str] = []
    assert seen("5", paged.append) == ""
    whole = seen("90", no_command)
    assert "4 samples" in whole and [f"{text}\n" for text in paged] == [whole]
    assert seen("5", no_command) == whole
    monkeypatch.setattr("harness.cli.show.counted", cut_off)
    assert seen("5", paged.append, code=130) == "" and len(paged) == 1


@pytest.mark.parametrize("words", [
    ("--samples", "--failures"), ("--sample", "ann", "--costs"), ("--failures", "--prices", "p"),
    ("--stage", "name"), ("--stage", "name", "--metrics"),
])  # fmt: skip
def test_options_that_say_nothing_together_are_refused(kept_run, printed, words):
    said = printed("show", str(kept_run.path), *words, code=2).err
    named = [word for word in words if word.startswith("--") and word != "--metrics"]
    assert f"these options say nothing together\n  found:    {' '.join(named)}\n" in said


def test_a_sample_is_shown_whole_and_a_user_through_all_tasks_and_stages(kept_run, shown):
    out = shown(str(kept_run.path), "--sample", "ann/1", "--task", "toy")
    assert "toy / name / ann/1  (user ann)" in out
    for part in (
        '"history": "cats"',
        "candidate, prompt name, from model, ended by stop, read as brackets, 12 + 7 tokens, 1.5 s",
        "system:\n    Be brief.\n",
        "user:\n    Line one\n    line two: cats\n",
        "reasoning:\n    They like [bold]cats[/bold] in a café\\x9b.\n",
        'answer:\n    \\x1b[31m["cats", "tea"]\\x07\n',
        "value ",
    ):
        assert part in out
    assert printable(out)
    assert "bob" not in out
    out = shown(str(kept_run.path), "--sample", "cid")
    assert "failed: ValueError" in out
    assert "    Traceback (most recent call last):\n      File x\n" in out
    out = shown(str(kept_run.path), "--sample", "ann")
    assert "toy / name / ann/1" in out
    assert "later / name / ann/1" in out
    out = shown(str(kept_run.path), "--sample", "ann", "--json")
    assert out.isascii() and printable(out)
    document: Any = json.loads(out)
    assert [each["task"] for each in document["records"]] == ["toy", "later"]
    call = document["records"][0]["record"]["calls"][0]
    assert call["messages"][0] == {"role": "system", "content": "Be brief."}


def test_a_sample_has_the_verdicts_of_rules_and_the_scores_of_its_units(scored_run, shown):
    judged = Judged(
        role="judge", prompt="fits", subject="cats", labels=("a", "b", "c"),
        verdict=Selected(chosen=(2, 0)), votes=(Vote(member="m", verdict=Selected(chosen=())),),
    )  # fmt: skip
    line = make_line(9, {"id": "ann/9", "user": "ann"}, Done("x"))
    line = msgspec.structs.replace(line, judged=(judged,))
    write_journal(scored_run.journal("later", 1, "name"), line)
    words = str(scored_run.path), "--sample", "ann"
    out = shown(*words)
    _, _, verdict = out.partition("── verdict of judge, prompt fits on cats ")
    assert (
        "".join(verdict.splitlines(keepends=True)[1:4])
        == "m:\n    chosen of 3: none\n    chosen of 3: c, a\n"
    )
    assert out.count("══ toy / score / ann") == 1 and "══ later / score" not in out
    document = json.loads(shown(*words, "--json"))
    (found,) = document["scores"]
    assert (found["task"], found["score"]["user"]) == ("toy", "ann")
    assert found["score"]["values"]["many"] == 2
    assert json.loads(shown(*words, "--stage", "name", "--json"))["scores"] == []


def test_long_items_and_prompts_of_many_records_are_cut_in_the_middle(kept_run, shown):
    lines = "\n".join(f"line {number}" for number in range(60))
    messages = (Message("user", lines),)
    call = CallRecord(role="candidate", prompt="name", key="k", messages=messages, text=lines)
    many = [
        make_line(number, {"id": f"ann/{number}", "user": "ann"}, Done("x"), calls=(call,))
        for number in range(11)
    ]
    write_journal(kept_run.journal("later", 1, "name"), *many)
    out = shown(str(kept_run.path), "--sample", "ann", "--task", "later")
    assert out.count("user:\n    line 0\n") == 11
    left_out = "    line 5\n    … 50 lines left out: --task later --stage name --sample ann/3\n"
    assert f"{left_out}    line 56\n" in out
    assert out.count("    line 10\n") == 11  # in the answers
    one = shown(str(kept_run.path), "--sample", "ann/3", "--task", "later")
    assert "left out" not in one


pytestmark = pytest.mark.usefixtures("elsewhere")


def test_a_folder_is_shown_whatever_the_settings_say_and_what_makes_a_summary_that_it_lacks(
    kept_run, tmp_path, shown
):
    (tmp_path / "harness.toml").write_text("no TOML")
    out = shown(str(kept_run.path))
    assert "m-1, begun " in out
    assert "task toy: not scored: use `harness score RUN`" in out


def test_a_run_that_is_not_named_is_asked_for(printed):
    said = printed("show", "--failures", code=2).err
    assert said == "harness: RUN is missing\n  to do:    `harness runs` lists the runs\n"

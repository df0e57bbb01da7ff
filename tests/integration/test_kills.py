"""Killed where it hurts: after a cut answer, between memo and record, before the result is out."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.testing import faults

JUDGE = "judge-model"
TASK = "gist_synthetic"
ONE_BY_ONE = ("--set", "interests_a_question=1")

KILLER = """
import os
import signal
from pathlib import Path

from harness import hookimpl
from harness.runs.journal import JournalWriter

where = os.environ.get("KILLED", "")
append = JournalWriter.append


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def append_or_die(self, record):
    if where and self.path.name.endswith(where) and record.id == "3":
        self.flush()
        die()
    append(self, record)


JournalWriter.append = append_or_die


@hookimpl
def on_run_end(event):
    if where == "done":
        die()
"""
"""A plugin that ends its process where the variable KILLED says."""


def cut_or_refused(asked):
    """Cuts or refuses two of three answers of the judge."""
    kinds = (faults.TRUNCATED, faults.FILTERED, None)
    return kinds[int(asked.digest, 16) % 3] if asked.body["model"] == JUDGE else None


def untimed(records):
    """The outcomes and calls of records by their ids, without times and the keys of the run."""
    return {
        record["id"]: (
            record["outcome"],
            [
                {name: part for name, part in call.items() if name not in ("seconds", "key")}
                for call in record["calls"]
            ],
        )
        for record in records
    }


def lines_of(journal):
    return [json.loads(line) for line in journal.read_text().splitlines()]


def kill_again_and_again(harness, server, *options, answers):
    """Kill the command whenever the server has sent so many answers, 0.5 s after the last of them.

    Gives the number of requests without an answer.
    """
    rule, unanswered = server.faults, 0
    for sent in answers:
        most = server.count + sent
        server.faults = lambda asked, most=most: (
            faults.SILENCE if asked.number >= most else rule(asked)
        )
        process = harness.start(*options)
        harness.wait_until(lambda least=most + 1: server.count >= least)
        time.sleep(0.5)
        harness.kill(process)
        unanswered += server.count - most
    server.faults = rule
    return unanswered


def test_what_an_answer_cost_is_recorded_whether_or_not_the_run_was_killed(harness, serve):
    def busy_at_first(asked):
        return faults.status(503) if asked.again == 0 else cut_or_refused(asked)

    server = serve(harness, faults=busy_at_first)
    options = ("--limit", "1", "--no_store", "--max_failures", "1", "--concurrency", "1")
    whole = harness.run("--output_path", "whole", *options).ok()
    (journal,) = (harness.folder / "whole").glob("*/*/1-name.jsonl")
    wanted = untimed(lines_of(journal))
    server.counts.clear()
    unanswered = kill_again_and_again(harness, server, *options, answers=(2,))
    assert unanswered == 1
    done = harness.run(*options).ok()
    assert done.summary()["stages"] == whole.summary()["stages"]
    assert untimed(harness.records("name")) == wanted


@pytest.mark.parametrize("store", [(), ("--no_store",)], ids=["store", "no store"])
def test_a_kill_between_memo_and_record_changes_no_count(gist, serve, install, store):
    install(KILLER)
    server = serve(gist)
    options = (*ONE_BY_ONE, "--concurrency", "1", *store)
    cache = {"HARNESS_CACHE": str(gist.folder / "other")}
    whole = gist.process(gist.arguments("--output_path", "whole", *options), **cache).ok()
    once = server.count

    killed = gist.process(gist.arguments(*options), KILLED="-taxonomy.jsonl")
    assert killed.code == -9
    done = gist.process(gist.arguments(*options)).ok()
    assert done.summary(TASK) == whole.summary(TASK)
    # The last answers may not be written yet where it is killed.
    assert server.count <= 2 * once + 2


def test_a_kill_after_the_end_loses_no_result_and_costs_nothing(harness, serve, install):
    install(KILLER)
    server = serve(harness)
    killed = harness.process(harness.arguments(), KILLED="done")
    assert (killed.code, killed.out) == (-9, "")
    assert harness.manifest()["status"] == "done"
    once = server.count

    done = harness.run().ok()
    assert server.count == once
    assert done.summary()["metrics"]["support"]["n"] == 40
    assert harness.manifest()["delivered"] is True
    stages = done.summary()["stages"]
    assert stages["name"]["roles"]["candidate"]["from_store"] == 0

    other = harness.run().ok()
    assert len(harness.folders) == 2
    assert other.summary()["metrics"] == done.summary()["metrics"]


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["tables", "json"])
def test_a_result_that_could_not_be_printed_is_printed_by_the_same_command(harness, serve, form):
    server = serve(harness)
    command = [word for word in harness.arguments() if word != "--json"] + [*form]
    with Path("/dev/full").open("w") as full:
        failed = subprocess.run(
            command, cwd=harness.folder, env=harness.environment, stdout=full,
            stderr=subprocess.PIPE, check=False, timeout=120,
        )  # fmt: skip
    assert failed.returncode != 0
    assert harness.manifest()["status"] == "done"
    assert harness.manifest()["delivered"] is False
    once = server.count

    done = harness.process(command).ok()
    assert "support" in done.out
    assert server.count == once
    assert len(harness.folders) == 1
    assert harness.manifest()["delivered"] is True


def test_a_result_is_delivered_once_evaluate_returns(harness, serve):
    server = serve(harness)
    code = "import harness; harness.evaluate('interests', model='openai', judge='lexical',"
    code += f" model_args='base_url={server.url},model=m', data='sample', limit=3)"
    for folders in (1, 2):
        harness.process([sys.executable, "-c", code]).ok()
        assert len(harness.folders) == folders
        run = json.loads((harness.folders[-1] / "manifest.json").read_text())
        assert (run["status"], run["delivered"]) == ("done", True)

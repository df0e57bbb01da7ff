"""What is told of a stored run that cannot be read, scored or compared, word for word."""

import re
from dataclasses import replace

import msgspec
import pytest
from inline_snapshot import snapshot

from harness.analysis.run_tables import tables_of
from harness.base.errors import DataError, PluginError, StorageError, UsageError
from harness.comparison.compare_runs import compare, read_oracle
from harness.contracts.benchmark import Metric, Oracle
from harness.contracts.records import Score
from harness.registry import load_plugins
from harness.runs.journal import JournalWriter
from harness.runs.run_folder import RunFolder
from harness.scoring.finished_task import finished_task
from harness.scoring.score_run import score_task


@pytest.fixture
def folder(small_run):
    return RunFolder(small_run)


@pytest.fixture
def benchmark():
    return load_plugins().benchmark("interests")


def kept(folder, benchmark):
    return finished_task(folder, folder.manifest(), "interests", benchmark, label="m")


def scored(folder, benchmark):
    return score_task(folder, folder.manifest(), "interests", benchmark)


def with_stage(benchmark, **changes):
    first, *others = benchmark.stages
    return replace(benchmark, stages=(replace(first, **changes), *others))


def oracle(gather):
    return Oracle(gather=gather, rescore=gather, read=gather, write=gather, metrics=())


def test_records_of_a_stage_that_is_gone_or_of_another_type(folder, benchmark, raised):
    wording = raised(
        PluginError, kept(folder, benchmark).records, "nam",
        where="RUN, task 'interests'",
        found="stages name, support of the run, name, support of the benchmark", RUN=folder.path,
    )  # fmt: skip
    assert wording == snapshot("""\
no records of a stage 'nam'
expected: a stage that both have
to do: use the release of the plugin that the manifest names""")
    with pytest.raises(PluginError, match="no records of a stage 'name'"):
        kept(folder, with_stage(benchmark, name="list")).records("name")
    records = kept(folder, with_stage(benchmark, value=int)).records("name")
    # Which of the two people was written first is the run's business.
    where = re.compile(r"RUN/interests/1-name\.jsonl:[12]")
    found = "Expected `int`, got `array` - at `$.outcome.value`"
    wording = raised(DataError, list, records, where=where, found=found, RUN=folder.path)
    assert (
        wording
        == snapshot("""\
a record does not fit the types of its stage
to do: the benchmark's code changed since the run: use the release of the plugin that the manifest names, or repeat the command with --reuse none; in a benchmark of your own, raise the `version` of the stage: the stored answers are read again""")
    )
    renamed, where = with_stage(benchmark, name="list"), "task 'interests'"
    wording = raised(
        PluginError, scored, folder, renamed, where=where, found="stages list, support"
    )
    assert wording == snapshot("""\
benchmark 'interests' lacks the stage 'name' of the run
expected: stages name, support, as in the run
to do: use the release of the plugin that the manifest names""")


def test_a_score_that_is_no_number_and_a_benchmark_that_fails_to_compare(folder, benchmark, raised):
    def score(records, options):
        yield Score(id="ann/1", user="ann", values={"support": "high"})

    worded, where = replace(benchmark, score=score), "metric 'support'"
    assert raised(PluginError, scored, folder, worded, where=where, found="'high'") == snapshot("""\
the score of 'ann/1' is not a number
expected: a number, or a cause under `missing`""")

    def gather(scores, held):
        raise ZeroDivisionError("no users")

    broken = kept(folder, replace(benchmark, oracle=oracle(gather)))
    found = re.compile(
        r"Traceback \(most recent call last\):\n.*\n *ZeroDivisionError: no users", re.DOTALL
    )
    assert raised(PluginError, compare, [broken], found=found) == snapshot("""\
benchmark 'interests' failed to compare runs
to do: the scores are kept: fix the benchmark, then run `harness score RUN`""")


def test_an_oracle_that_is_not_there(tmp_path, raised):
    given, where = (tmp_path / "none.json", oracle(print), None), "DIR/none.json"
    wording = raised(DataError, read_oracle, *given, where=where, found="No such file or directory")
    assert wording == snapshot("""\
the oracle cannot be read
expected: a file that `harness compare --export_oracle` wrote""")


def test_a_metric_with_the_name_of_a_column(folder, benchmark, raised):
    task = kept(folder, replace(benchmark, metrics={"user": Metric(description="")}))
    task = replace(task, task=msgspec.structs.replace(task.task, metrics=("user",)))
    wording = raised(UsageError, tables_of, [task], where="task interests", found="user")
    assert wording == snapshot("""\
two columns of the table of scores would have the same name
expected: a different name for each column, and none of run, task, id, user
to do: export one task alone with --task, or read scores.jsonl""")


def test_a_journal_after_its_end(tmp_path, raised):
    journal = JournalWriter(tmp_path / "1-name.jsonl")
    journal.close()
    wording = raised(StorageError, journal.drop, "key", [b"1"], where="DIR/1-name.jsonl")
    assert wording == snapshot("""\
the journal is closed
expected: records before `close`, or a new JournalWriter""")

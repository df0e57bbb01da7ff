"""What is told of a stored run that cannot be read, scored or compared, word for word."""

import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import harness
from harness.errors import HarnessError
from harness.pipeline.benchmark import Metric, Oracle
from harness.plugin_manager import load_plugins
from harness.results.comparison import compare, read_oracle
from harness.results.folder import RunFolder
from harness.results.journal import JournalWriter
from harness.results.kept import kept_task
from harness.results.records import Score
from harness.results.rescoring import rescoring
from harness.results.scoring import score_task
from harness.results.tables import tables_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A finished run of two people."""
    place = tmp_path_factory.mktemp("kept")
    result = harness.evaluate(
        "interests", model="baseline", judge="lexical", data="sample", limit=2,
        output_path=place, use_store=False,
    )  # fmt: skip
    return RunFolder(result.folder)


@pytest.fixture
def benchmark():
    return load_plugins().benchmark("interests")


@pytest.fixture
def said(folder):
    def text(call, *given):
        with pytest.raises(HarnessError) as caught:
            call(*given)
        return str(caught.value).replace(str(folder.path), "RUN")

    return text


def kept(folder, benchmark):
    return kept_task(folder, folder.manifest(), "interests", benchmark, label="m")


def scored(folder, benchmark):
    return score_task(folder, folder.manifest(), "interests", benchmark)


def with_stage(benchmark, **changes):
    first, *others = benchmark.stages
    return replace(benchmark, stages=(replace(first, **changes), *others))


def oracle(gather):
    return Oracle(gather=gather, rescore=gather, read=gather, write=gather, metrics=())


def test_records_of_a_stage_that_the_run_has_not(folder, benchmark, said):
    assert (
        said(kept(folder, benchmark).records, "nam")
        == """\
RUN, task 'interests': no records of a stage 'nam'
  found:    stages name, support of the run, name, support of the benchmark
  expected: a stage of both
  to do:    use the release of the plugin that the manifest names"""
    )


def test_records_of_another_type(folder, benchmark, said):
    records = kept(folder, with_stage(benchmark, value=int)).records("name")
    # Which of the two people was written first is the run's business.
    assert (
        re.sub(r"jsonl:[12]:", "jsonl:LINE:", said(list, records))
        == """\
RUN/interests/1-name.jsonl:LINE: a record does not fit the types of its stage
  found:    Expected `int`, got `array` - at `$.outcome.value`
  to do:    the benchmark's code changed since the run; raise its stage's version, or use the \
release of the plugin that the manifest names"""
    )


def test_a_stage_that_the_benchmark_has_no_more(folder, benchmark, said):
    assert (
        said(scored, folder, with_stage(benchmark, name="list"))
        == """\
task 'interests': benchmark 'interests' has no stage 'name', but the run had
  found:    stages list, support
  expected: stages name, support, as in the run
  to do:    use the release of the plugin that the manifest names"""
    )


def test_a_score_that_is_no_number(folder, benchmark, said):
    def score(records, options):
        yield Score(id="ann/1", user="ann", values={"support": "high"})

    assert (
        said(scored, folder, replace(benchmark, score=score))
        == """\
metric 'support': the score of 'ann/1' is no number
  found:    'high'
  expected: a number, or a cause under `missing`"""
    )


def test_a_change_that_needs_new_answers(folder, benchmark, said):
    asked = folder.manifest().tasks["interests"].task()
    wanted = msgspec.structs.replace(asked, options={**asked.options, "window": 5})
    assert (
        said(rescoring, asked, wanted, benchmark)
        == """\
task 'interests' cannot be scored so without asking again
  found:    window 20 → 5
  expected: changes of min_support, metrics, interval, least_scored
  to do:    a run with these changes asks for what is new, and takes the rest from the store"""
    )


def test_a_benchmark_that_fails_to_compare(folder, benchmark, said):
    def gather(scores, held):
        raise ZeroDivisionError("no users")

    text = said(compare, [kept(folder, replace(benchmark, oracle=oracle(gather)))])
    before, trace, after = text.partition("Traceback (most recent call last):\n")
    assert (
        before + trace + after[after.rindex("ZeroDivisionError") :]
        == """\
benchmark 'interests' failed to compare runs
  found:    Traceback (most recent call last):
ZeroDivisionError: no users
  to do:    the scores are kept: mend the benchmark, then `harness score`"""
    )


def test_an_oracle_that_is_not_there(tmp_path, monkeypatch, said):
    monkeypatch.chdir(tmp_path)
    assert (
        said(read_oracle, Path("none.json"), oracle(print), None)
        == """\
none.json: the oracle cannot be read
  found:    No such file or directory
  expected: a file that `harness score --export_oracle` wrote"""
    )


def test_a_metric_with_the_name_of_a_column(folder, benchmark, said):
    task = kept(folder, replace(benchmark, metrics={"user": Metric(description="")}))
    task = replace(task, task=msgspec.structs.replace(task.task, metrics=("user",)))
    assert (
        said(tables_of, [task])
        == """\
task interests: two columns of the scores would have one name
  found:    user
  expected: metrics of other names, none of them task, id, user
  to do:    --task exports one task alone; the scores are in scores.jsonl too"""
    )


def test_a_journal_after_its_end(tmp_path, said):
    journal = JournalWriter(tmp_path / "1-name.jsonl")
    journal.close()
    assert (
        said(journal.drop, "key", [b"1"]).replace(str(tmp_path), "FOLDER")
        == """\
FOLDER/1-name.jsonl: the journal is closed
  expected: records before `close`, or a new JournalWriter"""
    )

"""What the schema refuses, and how that reads."""

from pathlib import Path
from textwrap import dedent

import pytest

from harness.contracts.model import Sampling
from harness.contracts.task import SamplingKeys, Task, TaskFile
from harness.tasks.load import load_text
from harness.tasks.task_schema import completeness_errors, document_errors, part_errors

WHOLE = """
task: whole
version: 2
benchmark: films
description: All keys there are.
tags: [a]
extends: [one, two.yaml]
abstract: false
data:
  sources:
    - hub: {repo: o/n, config: null, revision: main}
    - url: {address: "https://h/get?id=1", name: a.zip, digest: null, terms: none, contents: {}}
    - drive: {file: 1Px0VosZH0YHmg6y9BbMMFEwraDKAzs4o, name: a.zip}
    - build: {tool: make, options: {least: 3}, inputs: {log: [{hub: {repo: a/b, files: [c]}}]}}
    - ask: {steps: [Log in.], terms: none}
  sample: sample
  size: 10
  tables:
    seen:
      files: ["*.csv"]
      split: train
      hub_files: [a.csv]
      required: false
      entries: [id, value]
      columns:
        id: {type: integer, required: false, aliases: [ID], one_of: ["1"]}
options: {anything: [1]}
roles:
  candidate: {default: null, same_as: judge, sampling: {temperature: 1e-5, max_tokens: 1}}
stages:
  guess: {candidate: {top_p: 0.9, top_k: 20, presence_penalty: -0.5, stop: ["\\n"]}}
prompts: {guess.candidate: mine.j2}
metrics: [hits]
interval: {draws: 100, confidence: 0.9}
"""


def errors(text):
    return document_errors(load_text(dedent(text).lstrip("\n"), file=Path("a.yaml")))


def test_a_file_has_the_keys_of_a_task_and_with_all_of_them_is_valid():
    assert errors(WHOLE) == []
    assert errors("group: g\ntasks: [a, b.yaml]\ndescription: d\ntags: [t]") == []
    own = {"task", "extends", "abstract", "matrix"}
    kept = set(Task.__struct_fields__) - {"name", "file", "bases"}
    assert set(TaskFile.__annotations__) - own == kept
    assert set(SamplingKeys.__annotations__) == set(Sampling.__struct_fields__)


def test_every_key_says_what_it_means():
    whole = load_text(WHOLE, file=Path("a.yaml")).values
    for key in TaskFile.__annotations__.keys() - {"matrix"}:
        (error,) = errors(f"task: {key}\n{key}: !!null") if key != "task" else errors("task: 3")
        assert str(error.expected).endswith(")"), key
    for name, value in whole["data"].items():
        wrong = 3 if value != 10 else "x"
        (error,) = part_errors("data", {**whole["data"], name: wrong}, lambda path, **_: "here")
        assert str(error.expected).endswith(")"), name


def test_all_errors_are_told_in_the_order_of_their_lines():
    found = errors("task: a b\nextends: b\nversion: x\nnope: 1\nmetrics: []\ninterval: {drows: 1}")
    told = [error.where for error in found]
    assert told == ["a.yaml:1:7", "a.yaml:3:10", "a.yaml:4:1", "a.yaml:5:10", "a.yaml:6:12"]


ADDRESS = "an address as https://host/file.zip, without a user or password"
DIGEST = "sha256: or md5: and the digits"


@pytest.mark.parametrize(
    ("line", "where", "expected"),
    [
        ("version: '1'", "3:10", "a whole number"),
        ("version: 0", "3:10", "a whole number, at least 1"),
        ("abstract: yes", "3:11", "true or false"),
        ("tags: [a, b c]", "3:11", "letters, digits, _ and -, beginning with a letter or digit"),
        ("tags: [a, a]", "3:7", "a list without duplicates"),
        ("metrics: hits", "3:10", "a list"),
        ("metrics: []", "3:10", "a list of one or more texts"),
        ("options: [a]", "3:10", "keys and values"),
        ("interval: {confidence: 1}", "3:24", "a number, above 0 and below 1"),
        ("data: {tables: {}}", "3:16", "keys and values, at least one"),
        (
            "data: {tables: {a: {columns: {b: {type: text}}}}}",
            "3:41",
            "one of any, boolean, integer, list, number, object, string",
        ),
        ("data: {tables: {a: {entries: [b]}}}", "3:30", "a list of 2"),
        ("prompts: {a.b: 3}", "3:16", "text"),
        (
            "data: {sources: [{hub: {repo: o/n}, ask: {steps: [a]}}]}",
            "3:18",
            "exactly one of hub, url, drive, build, ask",
        ),
        ("data: {sources: [{ask: {steps: []}}]}", "3:32", "a list of one or more texts"),
        ("data: {sources: [{drive: {file: short, name: a.zip}}]}", "3:33", "the file's id"),
        (
            "data: {sources: [{build: {tool: t, inputs: {log: [{}]}}}]}",
            "3:51",
            "exactly one of hub, url, drive",
        ),
        ("data: {sources: [{url: {address: 'ftp://h/a.zip'}}]}", "3:34", ADDRESS),
        ("data: {sources: [{url: {address: 'https://me:secret@h/a.zip'}}]}", "3:34", ADDRESS),
        ("data: {sources: [{url: {address: 'https://h/a', digest: 'sha256:1'}}]}", "3:57", DIGEST),
        (
            "data: {sources: [{url: {address: 'https://h/a', name: ../a.zip}}]}",
            "3:55",
            "a file name",
        ),
        ("data: {sources: [{web: {}}]}", "3:19", "one of hub, url, drive, build, ask"),
    ],
)
def test_a_value_that_cannot_be_is_told_with_its_place_and_what_may(line, where, expected):
    (error,) = errors(f"task: a\nextends: b\n{line}")
    assert error.where == f"a.yaml:{where}"
    assert error.expected is not None
    assert error.expected.startswith(expected)


def test_a_file_is_a_task_or_a_group_which_has_members():
    (error,) = errors("version: 1")
    assert error.problem == "the file defines neither a task nor a group"
    (error,) = errors("group: a")
    assert (error.problem, error.where) == ("`tasks` is missing", "a.yaml:1:1")


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("task: a", ["version", "benchmark", "data", "metrics"]),
        ("task: a\nversion: 1\nbenchmark: b\nmetrics: [m]\ndata: {tables: {t: {}}}", []),
        (
            "task: a\nversion: 1\nbenchmark: b\nmetrics: [m]\ndata: {sources: [{hub: {}}]}",
            ["repo", "tables"],
        ),
    ],
)
def test_what_a_task_lacks_is_told_once_its_bases_are_merged_in(text, missing):
    document = load_text(text, file=Path("a.yaml"))
    assert document_errors(document) == []
    found = completeness_errors(document.values, document.where)
    assert sorted(str(error.expected).split("`")[1] for error in found) == sorted(missing)
    assert all(": " in str(error.expected) for error in found)

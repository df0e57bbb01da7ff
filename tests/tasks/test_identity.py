"""The hash of a task: what changes it and what does not."""

from hashlib import blake2b
from pathlib import Path

import msgspec
import pytest

from harness.contracts.task import (
    Base,
    DataSpec,
    DelimitedSpec,
    HubSpec,
    IntervalSpec,
    RoleSpec,
    SourceSpec,
    TableSpec,
    Task,
    UrlSpec,
)
from harness.tasks.identity import content_hash

LATIN = "iso-8859-1"
HUB = SourceSpec(hub=HubSpec(repo="a/b"))
URL = SourceSpec(url=UrlSpec(address="https://h/a.csv"))
TASK = Task(
    name="one",
    version=1,
    benchmark="films",
    data=DataSpec(tables={"seen": TableSpec()}),
    metrics=("hits",),
    options={"rate": 1e-05, "big": 1e16},
)


class Options(msgspec.Struct):
    rate: float
    window: int = 20


def key(task=TASK, *, options=None):
    return content_hash(
        task,
        template_hashes={"guess.candidate": "ab"},
        stage_versions={"guess": 1},
        options=options,
    )


@pytest.mark.parametrize(
    ("sources", "hub"),
    [((), b"null"), ((URL, HUB), b'{"config":null,"repo":"a/b","revision":null}')],
    ids=["given by hand", "on the hub, as with one source"],
)
def test_the_hash_is_the_same_on_every_machine(sources, hub):
    told = (
        b'{"stages":{"guess":1},'
        b'"task":{"benchmark":"films",'
        b'"data":{"hub":%s,"sample":null,"size":null,"tables":{"seen":'
        b'{"columns":{},"delimited":{"bare_returns":"error","header":[],"quotes":true},'
        b'"files":[],"hub_files":[],"split":null}}},'
        b'"interval":{"confidence":0.95,"draws":2000},"least_scored":0.0,"metrics":["hits"],'
        b'"options":{"big":1e+16,"rate":1e-05},"roles":{},"stages":{},"version":1},'
        b'"templates":{"guess.candidate":"ab"}}'
    ) % hub
    data = DataSpec(sources=sources, tables={"seen": TableSpec()})
    task = msgspec.structs.replace(TASK, data=data)
    assert key(task) == blake2b(told, digest_size=16).hexdigest()


@pytest.mark.parametrize(
    "same",
    [
        {"name": "two"},
        {"description": "Other words."},
        {"tags": ("t",)},
        {"file": Path("elsewhere.yaml"), "bases": (Base(Path("base.yaml"), "base"),)},
        {"interval": IntervalSpec(draws=2000)},
        {"data": DataSpec(tables={"seen": TableSpec(required=True, entries=None, rows_at=None)})},
        {"data": DataSpec(tables={"seen": TableSpec(delimited=DelimitedSpec(encoding="utf-8"))})},
        {"data": DataSpec(sources=(URL,), tables={"seen": TableSpec()})},
        {"prompts": {"guess.candidate": "told by the digest of the template"}},
    ],
)
def test_what_shapes_no_result_changes_nothing(same):
    assert key(msgspec.structs.replace(TASK, **same)) == key()


@pytest.mark.parametrize(
    "other",
    [
        {"data": DataSpec(tables={"seen": TableSpec(required=False)})},
        {"data": DataSpec(tables={"seen": TableSpec(entries=("id", "value"))})},
        {"data": DataSpec(tables={"seen": TableSpec(rows_at=())})},
        {"data": DataSpec(tables={"seen": TableSpec(delimited=DelimitedSpec(delimiter="::"))})},
        {"data": DataSpec(tables={"seen": TableSpec(delimited=DelimitedSpec(encoding=LATIN))})},
        {"roles": {"judge": RoleSpec(default="m")}},
        {"stages": {"guess": {"candidate": {"temperature": 1}}}},
        {"interval": IntervalSpec(method="bca")},
    ],
)
def test_what_shapes_a_result_changes_the_hash(other):
    assert key(msgspec.structs.replace(TASK, **other)) != key()


def test_defaults_of_options_enter_the_hash():
    assert key(options=Options(rate=1.0)) == key(options=Options(rate=1.0, window=20))
    assert key(options=Options(rate=1.0)) != key(options=Options(rate=1.0, window=21))

"""The sources of a task's data: in order, and what is said where none of them has it."""

import pytest
from builders.tables import data_in
from builders.web_server import CSV, Page, sha256

from harness.base.errors import DataError, StorageError, Unavailable
from harness.contracts.task import AskSpec, Column, DataSpec, HubSpec, SourceSpec, TableSpec
from harness.contracts.task import UrlSpec as Url
from harness.data.fetch import Fetching

PEOPLE = {"people": TableSpec(columns={"user": Column()})}
pytestmark = pytest.mark.usefixtures("cache")

ASK = SourceSpec(ask=AskSpec(steps=("Log in.", "Agree.", "Give --data DIR."), terms="no copies"))


def opened(*sources, said=None, **fetching):
    allowed = Fetching(say=(said if said is not None else []).append, **fetching)
    return data_in(None, DataSpec(sources=sources, tables=PEOPLE), task="quiz", fetching=allowed)


def at(web, name, **url):
    return SourceSpec(url=Url(address=f"{web.url}/{name}", **url))


def gone(web, kind):
    """A source that cannot be had for a reason of this kind."""
    if kind == "nobody there":
        return SourceSpec(url=Url(address="http://127.0.0.1:9/a.csv"))
    web.pages["/gone.csv"] = {
        "a page": Page(b"<html>log in", kind="text/html"),
        "403": Page(b"no", status=403),
        "404": Page(b"no", status=404),
    }[kind]
    return at(web, "gone.csv")


@pytest.mark.parametrize("kind", ["403", "404", "a page", "nobody there"])
def test_the_first_source_that_can_be_had_is_taken(web, kind):
    web.pages["/a.csv"] = Page(CSV)
    web.pages["/b.csv"] = Page(CSV + b"u3,3\n")
    said: list[str] = []
    data = opened(gone(web, kind), at(web, "a.csv"), at(web, "b.csv"), said=said)
    assert [row["user"] for _, row in data.table().rows()] == ["u1", "u2"]
    assert data.describe()["address"] == f"{web.url}/a.csv"
    assert [path for path, *_ in web.asked if path == "/b.csv"] == []
    assert [line for line in said if line.startswith("no data from ")]


def test_the_error_of_the_last_source_names_them_all(web):
    with pytest.raises(Unavailable) as caught:
        opened(gone(web, "403"), ASK)
    assert str(caught.value) == (
        "task 'quiz' cannot get its data from any of its 2 sources\n"
        f"  found:    {web.url}/gone.csv: the server refuses the file with status 403\n"
        "            its owner, who must be asked: task 'quiz' needs data that only a person can "
        "get: terms of its owner: no copies\n"
        "  to do:    open the address in a browser: the owner may want you to log in or to agree "
        "to terms first, or the file may have moved; then give the folder that holds the file, "
        "unpacked, with --data DIR\n"
        "            1. Log in.\n            2. Agree.\n            3. Give --data DIR."
    )


def test_offline_the_first_source_that_is_kept_is_taken(web):
    web.pages["/a.csv"] = Page(CSV)
    first, second = at(web, "gone.csv"), at(web, "a.csv")
    opened(second)
    assert opened(first, second, offline=True).describe()["digest"] == sha256(CSV)
    with pytest.raises(Unavailable) as caught:
        opened(first, at(web, "b.csv", digest=sha256(CSV)), offline=True)
    for part in ("'gone.csv'", "'b.csv'", "because of --offline", sha256(CSV), "--data"):
        assert part in str(caught.value)


def test_the_hub_is_a_source_among_others(web):
    web.pages["/a.csv"] = Page(CSV)
    opened(at(web, "a.csv"))
    hub = SourceSpec(hub=HubSpec(repo="no-such-owner/no-such-set"))
    tables = {"people": TableSpec(split="train", columns={"user": Column()})}
    offline = Fetching(offline=True, say=lambda line: None)
    data = data_in(None, DataSpec(sources=(hub, at(web, "a.csv")), tables=tables), fetching=offline)
    assert data.origin == "url"


@pytest.mark.parametrize("kind", ["a wrong digest", "a full disk"])
def test_another_fault_is_no_reason_to_take_another_source(web, monkeypatch, kind):
    web.pages["/a.csv"] = web.pages["/b.csv"] = Page(CSV)
    first = at(web, "a.csv", digest=sha256(b"other") if kind == "a wrong digest" else None)
    if kind == "a full disk":
        monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 1}))
    with pytest.raises((DataError, StorageError)) as caught:
        opened(first, at(web, "b.csv"))
    assert not isinstance(caught.value, Unavailable)
    assert [path for path, *_ in web.asked] == ["/a.csv"]


def test_several_tasks_try_once_what_cannot_be_had(web):
    web.pages["/a.csv"] = Page(CSV)
    said: list[str] = []
    fetching = Fetching(say=said.append)
    for task in ("one", "two"):
        spec = DataSpec(sources=(gone(web, "404"), at(web, "a.csv")), tables=PEOPLE)
        data_in(None, spec, task=task, fetching=fetching)
    assert [path for path, *_ in web.asked].count("/gone.csv") == 1
    assert sum("no data from" in line for line in said) == 1

"""A hub on loopback with a data set, and what reads it."""

import pytest
from builders.hub_server import asking, serving_hub
from builders.tables import data_in
from builders.web_server import serving
from msgspec import convert

from harness.base.errors import DataError
from harness.contracts.task import DataSpec
from harness.data import fetch as fetching
from harness.data.fetch import OFFLINE

FIRST = "1" * 40
SECOND = "2" * 40


@pytest.fixture
def hub():
    """A running hub with one data set of two commits; the second changed a value."""
    with serving_hub() as hub:
        hub.repos["people/notes"] = {
            FIRST: {"train.jsonl": rows("old"), "extra/labels.csv": b"user,label\nu1,tea\n"},
            SECOND: {"train.jsonl": rows("new"), "extra/labels.csv": b"user,label\nu1,rum\n"},
        }
        hub.tags["v1"] = FIRST
        yield hub


def rows(text):
    return b'{"user": "u1", "text": "%s", "n": 1}\n{"user": "u2", "text": "b", "n": 2}\n' % (
        text.encode()
    )


@pytest.fixture
def web(cache):
    """A server of pages; what is fetched from it is kept in the folder of this test."""
    with serving() as web:
        yield web


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The folder of downloads of this test, which may use the network and repeats at once."""
    for name in OFFLINE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HARNESS_DOWNLOADS", str(tmp_path / "downloads"))
    monkeypatch.setattr(fetching, "PAUSE", 0.01)
    return tmp_path / "downloads"


@pytest.fixture
def fetch(tmp_path):
    """Fetch a repository, or some of its files, into the hub cache of this test."""
    from huggingface_hub import snapshot_download

    def run(repo, *patterns, endpoint):
        with asking(tmp_path, endpoint):
            snapshot_download(repo, repo_type="dataset", allow_patterns=list(patterns) or None)

    return run


@pytest.fixture
def load(tmp_path):
    """Open a task's data with the caches of this test: its rows and what is said about it."""

    def run(spec, *, endpoint, **settings):
        with asking(tmp_path, endpoint, **settings):
            data = data_in(None, convert(spec, DataSpec), task="notes")
            tables, again = (
                {name: [row for _, row in data.table(name).rows()] for name in data.tables}
                for _ in range(2)
            )
            assert tables == again
            return {"tables": tables, "about": data.describe()}

    return run


@pytest.fixture
def refused(load):
    """The error with which the same ends."""

    def run(spec, *, endpoint):
        with pytest.raises(DataError) as caught:
            load(spec, endpoint=endpoint)
        return caught.value

    return run

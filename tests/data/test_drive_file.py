"""Files of Google Drive: through the real `gdown`, whose requests a server on loopback answers."""

import pytest
from builders.disks import room_for
from builders.web_data import opened, refused
from builders.web_server import CSV, Page, point_google_drive_at, sha256, unfinished, zipped
from requests.adapters import HTTPAdapter

from harness.base.errors import StorageError, Unavailable
from harness.contracts.task import Column, DataSpec, DriveSpec, SourceSpec, TableSpec

FILE = "1AbCdEfGhIjKlMnOpQrStUvWxYz012345"
SHOWN = f"https://drive.google.com/file/d/{FILE}/view"
FIRST = f"/uc?id={FILE}"
ROWS = 2_000
# gdown reads half a megabyte at a time.
LONG = b"user,x\n" + b"".join(b"user-%07d,%s\n" % (n, b"%d" % n * 200) for n in range(ROWS))
OTHER = LONG.replace(b"user-", b"anna-")
PEOPLE = {"people": TableSpec(files=("in/people.csv",), columns={"user": Column()})}

CONFIRM = (
    '<html><form id="download-form" action="https://drive.usercontent.google.com/download">'
    f'<input type="hidden" name="id" value="{FILE}">'
    '<input type="hidden" name="confirm" value="t"></form></html>'
)
QUOTA = (
    '<html><p class="uc-error-subcaption">Too many users have viewed or downloaded this file '
    "recently. Please try accessing the file again later.</p></html>"
)


@pytest.fixture(autouse=True)
def drive(cache, web, monkeypatch):
    monkeypatch.setattr("random.uniform", lambda low, high: 0.0)
    monkeypatch.setattr(HTTPAdapter, "send", HTTPAdapter.send)
    point_google_drive_at(web.url)


def file(body, **page):
    return Page(body, headers={"content-disposition": 'attachment; filename="x"'}, **page)


def html(text, status=200):
    return Page(text.encode(), kind="text/html; charset=utf-8", status=status)


def spec(name="people.csv", **drive):
    tables = PEOPLE if name.endswith("zip") else {"people": TableSpec(columns={"user": Column()})}
    return DataSpec(
        sources=(SourceSpec(drive=DriveSpec(file=FILE, name=name, **drive)),), tables=tables
    )


def count(data):
    return sum(1 for _ in data.table().rows())


def test_a_file_is_fetched_once_and_described(web, cache):
    web.pages[FIRST] = file(zipped(**{"in/people.csv": CSV}))
    said: list[str] = []
    given = spec("people.zip", terms="for research only")
    data = opened(given, said)
    assert count(data) == count(opened(given)) == 2
    assert len(web.asked) == 1
    assert said[0] == f"fetching {SHOWN}; terms: for research only"
    assert said[1] == f"  {len(web.pages[FIRST].body):,} bytes"
    about = data.describe()
    # The task states no digest of it.
    assert (about["origin"], about["comparable"], about["address"]) == ("drive", False, SHOWN)
    assert about["digest"] == sha256(web.pages[FIRST].body)
    assert unfinished(cache) == []
    assert count(opened(given, offline=True)) == 2


def test_the_page_that_warns_of_a_large_file_is_confirmed(web):
    web.pages[FIRST] = html(CONFIRM)
    web.pages[f"/download?id={FILE}&confirm=t"] = file(LONG)
    assert count(opened(spec(digest=sha256(LONG)))) == ROWS


@pytest.mark.parametrize("digest", [None, sha256(LONG)])
def test_a_download_that_breaks_goes_on_where_it_broke(web, digest):
    web.pages[FIRST] = file(LONG, cuts=[1_200_000])
    assert count(opened(spec(digest=digest))) == ROWS
    first, second = (one[1:] for one in web.asked)
    assert first == (None, None)
    assert second in (("bytes=1048576-", '"one"'), ("bytes=1200000-", '"one"'))


@pytest.mark.parametrize("digest", [None, sha256(OTHER)])
def test_a_file_that_changed_meanwhile_is_never_mixed_with_the_old_one(web, digest):
    web.pages[FIRST] = file(LONG, cuts=[1_200_000, 0, 0, 0])
    given = spec(digest=digest)
    refused(given)
    web.pages[FIRST] = file(OTHER, etag='"two"')
    if digest is not None:
        assert refused(given).found not in (sha256(LONG), sha256(OTHER))
    assert opened(given).describe()["digest"] == sha256(OTHER)


def test_a_server_that_does_not_go_on_is_asked_for_all(web):
    web.pages[FIRST] = file(LONG, cuts=[1_200_000, 0, 0, 0])
    given = spec(digest=sha256(LONG))
    refused(given)
    web.pages[FIRST] = file(LONG, ranges=False)
    assert count(opened(given)) == ROWS


@pytest.mark.parametrize(
    ("page", "problem", "to_do"),
    [
        (html(QUOTA), "too many people fetched it", "repeat the command after a day"),
        (html("<html>Sign in"), "does not give the file to everybody", "share it with you"),
        (html("<html>", 403), "does not give the file to everybody", "open the address"),
        (html("<html>", 404), "does not give the file to everybody", "moved it"),
        (file(b"no", status=403), "refuses the file with status 403", "agree to terms"),
        (file(b"", status=503), "could not be fetched", "repeat the command"),
        (html('<form id="download-form">'), "does not give the file to everybody", "--data"),
    ],
)
def test_a_refusal_says_what_to_do(web, cache, page, problem, to_do):
    web.pages[FIRST] = page
    error = refused(spec())
    assert isinstance(error, Unavailable)
    assert problem in error.problem
    assert to_do in str(error.hint)
    assert error.where == SHOWN
    assert not list(cache.glob("sha256-*"))


def test_a_disk_that_fills_up_leaves_nothing(web, cache):
    web.pages[FIRST] = file(LONG)
    with room_for(1 << 20):
        error = refused(spec())
    assert isinstance(error, StorageError)
    assert "free some space" in str(error)
    assert unfinished(cache) == []
    assert count(opened(spec())) == ROWS

"""Data from the web: whole against a server on loopback, in the ways in which servers fail."""

import gzip
import hashlib
import io
import itertools
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile

import pytest
import zstandard
from builders.disks import room_for
from builders.processes import wait_until
from builders.web_data import opened, refused, users
from builders.web_server import CSV, LONG, ROWS, Page, sha256, unfinished, zipped

from harness.base.errors import DataError, UsageError
from harness.contracts.task import Column, DataSpec, SourceSpec, TableSpec, UrlSpec
from harness.data import fetch
from harness.data.fetch import downloads_folder, unpack


@pytest.fixture(autouse=True)
def small_chunks(cache, monkeypatch):
    monkeypatch.setattr(fetch, "CHUNK", 500)


def spec(address, *files, **url):
    table = TableSpec(files=files, columns={"user": Column()})
    return DataSpec(
        sources=(SourceSpec(url=UrlSpec(address=address, **url)),), tables={"people": table}
    )


@pytest.fixture
def people(web):
    """Serves a file as this page, and gives the data that is in it."""

    def serve(page, *files, name="people.csv", **url):
        web.pages[f"/{name}"] = page
        return spec(f"{web.url}/{name}", *files, **url)

    return serve


def tarred(*members):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for member, body in members:
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
    return packed.getvalue()


def names(value):
    return value if isinstance(value, str) else "packed"


def test_the_query_of_an_address_is_sent_and_shown_nowhere(web, cache):
    web.pages["/people.csv?token=abc123"] = Page(CSV)
    said: list[str] = []
    data = opened(spec(f"{web.url}/people.csv?token=abc123"), said=said)
    assert users(data) == ["u1", "u2"]
    assert said[0] == f"fetching {web.url}/people.csv?[redacted]"
    assert data.describe()["address"] == f"{web.url}/people.csv?[redacted]"
    assert not [file for file in cache.rglob("*.json") if "abc123" in file.read_text()]
    for address in (f"{web.url}/gone.csv?token=abc123", "http://127.0.0.1:9/a.csv?token=abc123"):
        for offline in (False, True):
            error = str(refused(spec(address), offline=offline))
            assert "?[redacted]" in error
            assert "abc123" not in error


def test_a_file_is_fetched_once_and_described(web, cache):
    web.pages["/people.csv"] = Page(CSV)
    said: list[str] = []
    given = spec(f"{web.url}/people.csv", digest=sha256(CSV), terms="for research only")
    data = opened(given, say=said.append)
    assert users(data) == ["u1", "u2"]
    assert said[0] == f"fetching {web.url}/people.csv; terms: for research only"
    assert said[1] == "  17 bytes"
    assert users(opened(given)) == ["u1", "u2"]
    assert len(web.asked) == 1
    about = data.describe()
    assert (about["origin"], about["comparable"]) == ("url", True)
    unknown = opened(spec(f"{web.url}/people.csv")).why_incomparable
    assert unknown == ("not the published data: the task knows no digest or count of it",)
    listed = spec(f"{web.url}/people.csv", contents={"people.csv": sha256(CSV)})
    assert opened(listed).why_incomparable == ()
    assert (about["address"], about["digest"]) == (f"{web.url}/people.csv", sha256(CSV))
    kept = about["tables"]["people"]["files"][0]["file"]
    assert kept == str(cache / sha256(CSV).replace(":", "-") / "people.csv" / "people.csv")
    assert unfinished(cache) == []


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("a.zip", zipped(**{"in/people.csv": CSV})),
        ("a.tar", tarred((tarfile.TarInfo("in/people.csv"), CSV))),
        ("a.tar.gz", gzip.compress(tarred((tarfile.TarInfo("in/people.csv"), CSV)))),
        ("a.tgz", gzip.compress(tarred((tarfile.TarInfo("in/people.csv"), CSV)))),
        ("a.tar.zst", zstandard.compress(tarred((tarfile.TarInfo("in/people.csv"), CSV)))),
        ("people.csv.gz", gzip.compress(CSV)),
        ("people.csv.zst", zstandard.compress(CSV)),
    ],
    ids=names,
)
def test_archives_are_unpacked_once(people, web, cache, name, body):
    given = people(Page(body), "in/people.csv", "people.csv", name=name)
    first = opened(given).describe()
    assert users(opened(given)) == ["u1", "u2"]
    assert opened(given, offline=True).describe()["fingerprint"] == first["fingerprint"]
    assert len(web.asked) == 1
    assert unfinished(cache) == []


def test_a_packed_file_is_kept_as_it_lies_on_the_server(people):
    packed = gzip.compress(CSV)
    page = Page(packed, encoding="gzip")
    given = people(page, name="people.csv.gz", digest=sha256(packed))
    assert users(opened(given)) == ["u1", "u2"]


def test_a_download_that_breaks_goes_on_where_it_broke(people, web):
    given = people(Page(LONG, cuts=[1000, 50_000]), digest=sha256(LONG))
    assert len(users(opened(given))) == ROWS
    assert [one[1:] for one in web.asked] == [
        (None, None), ("bytes=1000-", '"one"'), ("bytes=51000-", '"one"'),
    ]  # fmt: skip


@pytest.mark.parametrize("changed", [None, Page(CSV, etag='"two"')])
def test_a_later_command_goes_on_where_the_server_went_away_unless_the_file_changed(
    people, web, cache, changed
):
    given = people(Page(LONG, cuts=[1000, 0, 0, 0]))
    error = str(refused(given))
    assert "the file could not be fetched" in error
    assert "it continues where it stopped" in error
    assert "give the folder that holds the file, unpacked, with --data DIR" in error
    assert not list(cache.glob("sha256-*"))
    if changed is not None:
        people(changed)
    assert len(users(opened(given))) == (ROWS if changed is None else 2)
    assert web.asked[-1][1:] == ("bytes=1000-", '"one"')


@pytest.mark.parametrize("page", [Page(LONG, etag=None), Page(LONG, ranges=False)])
def test_a_server_without_validators_or_ranges_is_asked_for_all(people, page):
    page.cuts = [1000]
    assert len(users(opened(people(page, digest=sha256(LONG))))) == ROWS


def test_a_file_that_was_whole_when_the_process_died_is_not_fetched_again(
    people, web, cache, monkeypatch
):
    given = people(Page(CSV))

    def killed(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fetch, "_digest_of", killed)
        with pytest.raises(KeyboardInterrupt):
            opened(given)
    assert unfinished(cache)
    assert users(opened(given)) == ["u1", "u2"]
    assert len(web.asked) == 1
    assert unfinished(cache) == []


def test_a_wrong_digest_is_an_error_and_nothing_is_kept(people, web, cache):
    wrong = f"md5:{'0' * 32}"
    error = refused(people(Page(CSV), digest=wrong))
    assert isinstance(error, DataError)
    assert error.where == f"{web.url}/people.csv"
    assert (error.found, error.expected) == (f"md5:{hashlib.md5(CSV).hexdigest()}", wrong)
    assert unfinished(cache) == []
    assert not list(cache.glob("md5-*"))


def test_the_first_digest_counts_where_the_owner_states_none(people, cache):
    given = people(Page(CSV))
    opened(given)
    (folder,) = cache.glob("sha256-*")
    shutil.rmtree(folder)
    error = refused(people(Page(CSV + b"u3,3\n")))
    assert "was fetched from this address before" in str(error)
    assert error.expected == sha256(CSV)
    assert users(opened(people(Page(CSV)))) == ["u1", "u2"]


def test_files_in_an_archive_have_their_digests(people, cache):
    page = Page(zipped(**{"people.csv": CSV}))
    for name, found in (("people.csv", sha256(CSV)), ("items.csv", "0 such files")):
        error = refused(people(page, name="a.zip", contents={name: sha256(b"")}))
        assert error.found == found
    assert not list(cache.glob("sha256-*"))
    given = people(page, name="a.zip", contents={"people.csv": sha256(CSV)})
    assert users(opened(given)) == ["u1", "u2"]
    page = Page(zipped(**{"in/people.csv": CSV, "in/of/items.csv": b""}))
    named = {"people.csv": sha256(CSV), "of/items.csv": sha256(b"")}
    given = people(page, "people.csv", name="b.zip", contents=named)
    assert users(opened(given)) == ["u1", "u2"]  # in the only folder of the archive


def test_a_moved_file_is_followed(people, web):
    people(Page(LONG, cuts=[1000]), name="new/people.csv")
    given = people(Page(status=301, moved="/new/people.csv"))
    assert len(users(opened(given))) == ROWS
    assert web.asked[-1] == ("/new/people.csv", "bytes=1000-", '"one"')


@pytest.mark.parametrize(
    ("page", "said", "asked"),
    [
        (Page(b"no", status=401), ["refuses the file with status 401", "agree to terms"], 1),
        (Page(b"no", status=404), ["refuses the file with status 404", "agree to terms"], 1),
        (Page(CSV, status=302), ["refuses the file with status 302"], 1),  # it leads nowhere
        (Page(b"", status=503), ["503"], fetch.ATTEMPTS),
        (Page(b"<html>agree first", kind="text/html; charset=utf-8"),
         ["a web page in place of the file"], 1),
    ],
)  # fmt: skip
def test_a_refusal_is_an_error_and_nothing_is_kept(people, web, cache, *, page, said, asked):
    error = str(refused(people(page)))
    assert [part for part in said if part not in error] == []
    assert len(web.asked) == asked
    assert not list(cache.glob("sha256-*"))


def test_an_empty_file_is_an_error_and_the_next_command_asks_again(people, cache):
    assert "the server sent an empty file" in str(refused(people(Page(b""))))
    assert not list(cache.glob("sha256-*"))
    assert users(opened(people(Page(CSV)))) == ["u1", "u2"]


def test_a_file_without_a_length_counts_as_whole_only_by_its_digest(people, cache):
    error = str(refused(people(Page(CSV, length=False, cuts=[12]))))
    assert "does not say how long the file is" in error
    assert "`digest`" in error
    assert not list(cache.glob("sha256-*"))
    given = people(Page(CSV, length=False), digest=sha256(CSV))
    assert users(opened(given)) == ["u1", "u2"]


def link(name, target, kind):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member, b""


def zip_with_link():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        member = zipfile.ZipInfo("people.csv")
        member.external_attr = 0o120777 << 16
        archive.writestr(member, "/etc/hostname")
    return packed.getvalue()


def tar_with_holes():
    """A tar with one member of a few bytes that GNU tar would unpack to a gigabyte of zeros."""
    member = tarfile.TarInfo("people.csv")
    member.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    header[386:410] = b"00000000000\0" + b"00000000000\0"  # one piece of 0 bytes at 0
    header[483:495] = b"%011o\0" % (1 << 30)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + bytes(1024)


HOSTILE = [
    ("a.zip", zipped(**{"people.csv": CSV, "../evil.csv": CSV})),
    ("a.zip", zipped(**{"/evil.csv": CSV})),
    ("a.zip", zipped(**{"C:evil.csv": CSV})),
    ("a.zip", zip_with_link()),
    ("a.tar", tarred((tarfile.TarInfo("a/../../evil"), CSV))),
    ("a.tar", tarred((tarfile.TarInfo("/evil.csv"), CSV))),
    ("a.tar", tarred(link("people.csv", "/etc/hostname", tarfile.SYMTYPE))),
    ("a.tar", tarred(link("people.csv", "../x", tarfile.LNKTYPE))),
    ("a.tar", tarred(link("pipe", "", tarfile.FIFOTYPE))),
    ("a.tar", tar_with_holes()),
    ("a.tar", tarred((tarfile.TarInfo("a"), CSV), (tarfile.TarInfo("a/b.csv"), CSV))),
    ("a.zip", zipped(**{"n" * 300: CSV})),
    ("a.zip", zipped()),
    ("bomb.csv.gz", gzip.compress(bytes(70_000_000), 1)),
]
DAMAGED = [
    ("a.zip", zipped(**{"people.csv": LONG})[:-300]),
    ("a.zip", b"no archive"),
    ("a.tar", b"no archive"),
    ("a.tar.gz", gzip.compress(tarred((tarfile.TarInfo("people.csv"), LONG)))[:-20]),
    ("people.csv.gz", gzip.compress(LONG)[:-20]),
    ("people.csv.zst", zstandard.compress(LONG)[:-20]),
]


@pytest.mark.parametrize(("name", "body"), [*HOSTILE, *DAMAGED], ids=names)
def test_an_archive_that_is_damaged_or_cannot_be_trusted_is_refused(
    people, cache, tmp_path, name, body
):
    said = "the archive is refused" if (name, body) in HOSTILE else "cannot be"
    assert said in str(refused(people(Page(body), name=name)))
    assert not list(cache.glob("sha256-*"))
    assert unfinished(cache) == [] or (name, body) in DAMAGED
    assert not list(tmp_path.rglob("evil*"))


def test_no_damaged_byte_of_an_archive_is_kept_or_a_traceback(tmp_path):
    """Each byte of a zip of two files, changed in two ways; what is still whole may be used."""
    whole = zipped(**{"people.csv": CSV, "b/other.csv": CSV})
    refused = 0
    for place, change in itertools.product(range(len(whole)), (0x00, 0xFF)):
        body = bytearray(whole)
        body[place] = change if body[place] != change else 0x55
        folder = tmp_path / f"{place}-{change}"
        folder.mkdir()
        (tmp_path / "a.zip").write_bytes(body)
        try:
            unpack(tmp_path / "a.zip", folder, option="HARNESS_DOWNLOADS")
        except DataError:
            refused += 1
    assert refused > len(whole) / 4


def test_a_disk_that_fills_up_while_unpacking_keeps_the_archive(people, web, cache):
    rows = b"u" * 999 + b"\n"
    given = people(Page(gzip.compress(b"user\n" + rows * 200)), name="people.csv.gz")
    with room_for(100_000):
        error = str(refused(given))
    for part in ("cannot write", "free some space", "what was fetched is kept"):
        assert part in error
    assert not list(cache.glob("sha256-*"))
    assert sorted(one.name for one in unfinished(cache)) == [
        ".whole", "people.csv.gz", "people.csv.gz.validator",
    ]  # fmt: skip
    assert users(opened(given)) == ["u" * 999] * 200
    assert len(web.asked) == 1
    assert unfinished(cache) == []


FETCH = """
import sys
from harness.contracts.task import UrlSpec
from harness.data.fetch import fetched
from harness.data.fetch import Fetching
print(fetched(UrlSpec(address=sys.argv[1]), task="people", fetching=Fetching()).folder)
"""


def fetching(web, path):
    command = [sys.executable, "-c", FETCH, f"{web.url}{path}"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_two_processes_at_once_fetch_once(web):
    held = threading.Event()
    web.pages["/a.zip"] = Page(zipped(**{"people.csv": LONG}), held=held)
    with fetching(web, "/a.zip") as first:
        wait_until(lambda: web.asked)
        with fetching(web, "/a.zip") as second:
            assert any("another process fetches" in line for line in second.stderr)
            held.set()
            assert first.communicate()[0] == second.communicate()[0] != ""
    assert len(web.asked) == 1


def test_offline_nothing_is_fetched_and_the_error_says_what(web, cache, monkeypatch):
    given = spec(f"{web.url}/people.csv", digest=sha256(CSV))
    error = str(refused(given, offline=True))
    assert "nothing was fetched, because of --offline" in error
    for part in ("'people.csv'", f"{web.url}/people.csv", sha256(CSV), "--data", str(cache)):
        assert part in error
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "because HF_HUB_OFFLINE is set" in str(refused(given))
    assert web.asked == []


@pytest.mark.parametrize("length", [True, False])
def test_a_large_file_must_be_asked_for(people, cache, monkeypatch, length):
    monkeypatch.setattr(fetch, "LARGE", 1000)
    given = people(Page(LONG, length=length), digest=sha256(LONG))
    error = refused(given)
    assert isinstance(error, UsageError)
    assert "--download" in str(error)
    assert not list(cache.glob("sha256-*"))
    assert len(users(opened(given, download=True))) == ROWS


@pytest.mark.parametrize(("answer", "fetched"), [("y\n", True), ("\n", False)])
def test_a_person_at_a_terminal_is_asked(people, web, monkeypatch, answer, fetched):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    shown = Terminal()
    monkeypatch.setattr(fetch, "LARGE", 1000)
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", shown)
    given = people(Page(LONG, cuts=[5000]))
    if fetched:
        assert len(users(opened(given))) == ROWS
    else:
        assert "was refused" in str(refused(given))
    assert shown.getvalue().count(f"fetch {len(LONG):,} bytes from {web.url}/people.csv?") == 1


def test_the_name_of_a_file_is_safe():
    url = UrlSpec(address="https://h/a/people%20x.csv?v=1")
    assert fetch.file_name(url) == "people_x.csv"
    assert fetch.file_name(UrlSpec(address="https://h/get?id=1", name="a.csv")) == "a.csv"
    for address in ("https://h/..", "https://h/"):
        with pytest.raises(DataError, match=r"does not end with the name"):
            fetch.file_name(UrlSpec(address=address))


def test_the_folder_of_downloads(monkeypatch, tmp_path):
    assert downloads_folder() == tmp_path / "downloads"
    monkeypatch.delenv("HARNESS_DOWNLOADS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    assert downloads_folder() == tmp_path / "c" / "harness" / "downloads"

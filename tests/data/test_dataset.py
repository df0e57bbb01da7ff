import hashlib
import json
from typing import Any

import msgspec
import pytest
from builders.processes import run_python
from builders.tables import data_in
from builders.web_data import users
from builders.web_server import CSV as PAGE
from builders.web_server import Page, sha256

from harness.base.errors import DataError, HarnessError, StorageError, Unavailable
from harness.contracts.task import AskSpec, Column, DataSpec, HubSpec, SourceSpec, TableSpec
from harness.contracts.task import UrlSpec as Url
from harness.data.dataset import choose
from harness.data.fetch import Fetching
from harness.data.files import files_of, find_tables, holder_of, patterns
from harness.reporting.tables import data_name

NOTES = TableSpec(files=("notes.jsonl", "part-*.csv"), columns={"user": Column()})
ONE = DataSpec(tables={"notes": NOTES}, sample="sample_data")
CSV = "user,x\nu1,1\nu2,2\n"


def opened(spec, data, **options):
    return data_in(data, spec, **{"task": "interests", **options})


def refused(spec, data, **options):
    with pytest.raises(HarnessError) as caught:
        opened(spec, data, **options)
    return caught.value


def test_a_task_reads_no_link_out_of_its_folder_but_the_user_may(tmp_path):
    (tmp_path / "elsewhere.jsonl").write_text('{"user": "u"}\n')
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "notes.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    assert users(opened(ONE, folder)) == ["u"]
    error = refused(msgspec.structs.replace(ONE, folder=str(folder)), folder)
    assert "a link to a place outside its folder" in error.problem
    assert error.where == str(folder / "notes.jsonl")
    assert error.found == str(tmp_path / "elsewhere.jsonl")


def test_the_sample_is_in_the_package_and_compares_with_nothing(tmp_path):
    (tmp_path / "sample_data").mkdir()
    (tmp_path / "sample_data" / "notes.jsonl").write_text('{"user": "s"}\n')
    data = opened(ONE, "sample", package=tmp_path)
    assert users(data) == ["s"]
    assert (data.origin, data.why_incomparable) == ("sample", ("bundled sample data",))
    outside = DataSpec(tables={"notes": NOTES}, sample="..")
    error = refused(outside, "sample", package=tmp_path / "sample_data")
    assert "outside its package" in error.problem


def test_data_of_ones_own_says_whose_place_it_takes(tmp_path):
    (tmp_path / "mine.csv").write_text(CSV)
    on_hub = msgspec.structs.replace(ONE, sources=(SourceSpec(hub=HubSpec(repo="acme/notes")),))
    described = opened(on_hub, tmp_path / "mine.csv").describe()
    assert described["in_place_of"] == "acme/notes"
    assert data_name(described) == f"{tmp_path / 'mine.csv'}, in place of acme/notes"
    alone = opened(ONE, tmp_path / "mine.csv").describe()
    assert "in_place_of" not in alone
    assert data_name(alone) == str(tmp_path / "mine.csv")
    assert alone["fingerprint"] == described["fingerprint"]


PROFILES = TableSpec(required=False, columns={"user": Column()})
MAYBE = DataSpec(tables={"notes": NOTES, "profiles": PROFILES}, sample="sample_data")


def test_a_table_that_is_not_required_may_be_absent(tmp_path):
    (tmp_path / "notes.jsonl").write_text('{"user": "j"}\n')
    data = opened(MAYBE, tmp_path)
    assert (data.has("notes"), data.has("profiles")) == (True, False)
    assert set(data.tables) == {"notes"}
    assert data.describe() == opened(ONE, tmp_path).describe()
    for ask in (data.table, data.path, data.paths):
        with pytest.raises(DataError) as caught:
            ask("profiles")
        assert caught.value.problem == (
            "this data has no table 'profiles', which task 'interests' needs with its options"
        )
        assert str(caught.value.expected).startswith("profiles.jsonl, profiles.ndjson, ")
        assert str(caught.value.expected).endswith(f" in {tmp_path}")
    with pytest.raises(DataError, match="name one of them"):
        data.table()
    with pytest.raises(DataError, match="'profiles' is the nearest name"):
        data.has("profile")
    (tmp_path / "profiles.csv").write_text("user\nj\n")
    data = opened(MAYBE, tmp_path)
    assert data.has("profiles")
    assert [row for _, row in data.table("profiles").rows()] == [{"user": "j"}]


def test_size_and_limit_bound_the_choice_and_both_are_told(tmp_path):
    (tmp_path / "notes.jsonl").write_text('{"user": "j"}\n')
    ids = [f"u{n}" for n in range(50)]
    sized = DataSpec(tables={"notes": NOTES}, size=20)
    twenty = opened(sized, tmp_path).choose(ids)
    ten = opened(sized, tmp_path, limit=10)
    assert ten.choose(ids) == twenty[:10]
    assert len(opened(sized, tmp_path, limit=30).choose(ids)) == 20
    assert ten.describe()["chosen"] == {"users": {"chosen": 10, "of": 50}}
    with pytest.raises(DataError, match="no windows to choose from"):
        ten.choose([], of="windows")


def test_what_a_benchmark_notes_is_described_and_changes_no_fingerprint(tmp_path):
    (tmp_path / "mine.csv").write_text(CSV)
    data = opened(ONE, tmp_path / "mine.csv")
    before = data.describe()
    assert before["notes"] == {}
    data.note("rows left out for want of a name", 1)
    data.note("rows left out for want of a name", 1204)
    data.note("users left out", 2)
    data.note("users without a name", 3)
    data.note("users without a name", 0)
    data.note("users without a rating", 0)
    after = data.describe()
    assert after["notes"] == {"rows left out for want of a name": 1204, "users left out": 2}
    assert after["fingerprint"] == before["fingerprint"]
    assert data.noted == ("rows left out for want of a name: 1,204", "users left out: 2")
    with pytest.raises(DataError) as caught:
        data.choose([])
    assert caught.value.found == "rows left out for want of a name: 1,204; users left out: 2"


def test_what_was_read_is_described_by_its_bytes_unless_these_changed_after_reading(tmp_path):
    (tmp_path / "mine.csv").write_text(CSV)
    described = opened(ONE, tmp_path / "mine.csv", limit=5, seed=3).describe()
    assert json.loads(json.dumps(described)) == described
    assert described["tables"]["notes"]["files"] == [
        {
            "file": str(tmp_path / "mine.csv"),
            "bytes": 17,
            "sha256": hashlib.sha256(CSV.encode()).hexdigest(),
        }
    ]
    assert (described["origin"], described["limit"], described["seed"]) == ("local", 5, 3)
    data = opened(ONE, tmp_path / "mine.csv")
    users(data)
    (tmp_path / "mine.csv").write_text(CSV + "u3,3\n")
    with pytest.raises(DataError, match="changed while the run was using it"):
        data.describe()


def test_the_fingerprint_follows_content_and_not_names(tmp_path):
    prints = []
    for name, text in (("a.csv", CSV), ("b.csv", CSV), ("c.csv", CSV + "u3,3\n")):
        (tmp_path / name).write_text(text)
        prints.append(opened(ONE, tmp_path / name).describe()["fingerprint"])
    assert prints[0] == prints[1] != prints[2]


def test_opening_data_and_reading_text_load_no_large_library(tmp_path):
    (tmp_path / "mine.csv").write_text(CSV)
    code = (
        "import sys; from harness.data import open_dataset;"
        "from harness.contracts.task import DataSpec, TableSpec;"
        "d = open_dataset(DataSpec(tables={'t': TableSpec()}), data=sys.argv[1], limit=None,"
        " seed=0, package=None, task='t'); assert len(list(d.table().rows())) == 2;"
        "print([m for m in ('datasets', 'duckdb', 'pyarrow', 'huggingface_hub', 'numpy')"
        " if m in sys.modules])"
    )
    assert run_python(code, tmp_path / "mine.csv").strip() == "[]"


def test_what_is_made_of_a_table_is_made_once_for_all_tasks_that_read_it(tmp_path):
    made: list[str] = []

    def names(table):
        made.append(table.name)
        return [row["user"] for _, row in table.rows()]

    def count(*tables):
        return len(tables)

    def other(one, same, most):
        return one.name, len(list(same.rows())[:most])

    file = tmp_path / "notes.csv"
    file.write_text(CSV)
    shared: dict[Any, Any] = {}
    spec = DataSpec(tables={"notes": TableSpec(columns={"user": Column()})})
    first, second = (opened(spec, file, shared=shared) for _ in range(2))
    assert first.once("notes", names) is second.once("notes", names)
    assert [first.once(("notes", "notes"), other, most) for most in (1, 2)] == [
        ("notes", 1), ("notes", 2),
    ]  # fmt: skip
    counts = [first.once(tables, count) for tables in ("notes", ("notes", "notes"))]
    assert counts == [1, 2]
    assert made == ["notes"]
    assert opened(spec, file).once("notes", names) == ["u1", "u2"]
    wider = DataSpec(tables={"notes": TableSpec(columns={"user": Column(), "x": Column()})})
    assert opened(wider, file, shared=shared).once("notes", names) == ["u1", "u2"]
    file.write_text("user,x\nu3,1\n")
    assert opened(spec, file, shared=shared).once("notes", names) == ["u3"]
    assert len(made) == 4


IDS = [f"u{n}" for n in range(100)]


def test_the_choice_is_pinned_and_the_same_in_every_process():
    here, of = choose(IDS, seed=0, most=4)
    assert (here, of) == (["u27", "u45", "u35", "u89"], 100)
    code = (
        "from harness.data.dataset import choose;"
        "print(choose({f'u{n}' for n in range(100)}, seed=0, most=4)[0])"
    )
    for hash_seed in ("1", "2"):
        assert run_python(code, PYTHONHASHSEED=hash_seed).strip() == str(here)


def test_a_choice_depends_on_the_ids_and_the_seed_and_stays_when_others_come_or_go():
    assert choose([*reversed(IDS), *IDS], seed=0, most=7) == choose(IDS, seed=0, most=7)
    first, _ = choose(IDS, seed=0, most=None)
    second, _ = choose(IDS, seed=1, most=None)
    assert sorted(first) == sorted(second) == sorted(IDS)
    assert first != second
    chosen, _ = choose(IDS, seed=0, most=10)
    fewer, _ = choose([one for one in IDS if one not in chosen[:5]], seed=0, most=5)
    assert fewer == chosen[5:]


SEEN = TableSpec(files=("seen.csv", "seen-*.csv"))
FILMS = TableSpec(files=("films.csv",))


def write(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def found(folder, table=SEEN):
    return [path.name for path in files_of(folder, "seen", table, task="t")]


def test_the_first_pattern_that_finds_a_file_decides_and_hidden_files_are_no_data(tmp_path):
    table = TableSpec(files=("**/*.csv",))
    write(tmp_path, ".cache/a.csv", ".b.csv", "c.csv/inside.txt", "d/e.csv")
    assert found(tmp_path, table) == ["e.csv"]
    for name in ("../seen.csv", "/etc/seen.csv"):
        with pytest.raises(DataError, match="looks for files outside its folder"):
            found(tmp_path, TableSpec(files=(name,)))
    write(tmp_path, "seen-2.csv", "seen-10.csv", "seen-1.csv")
    assert found(tmp_path) == ["seen-1.csv", "seen-10.csv", "seen-2.csv"]
    write(tmp_path, "seen.csv.gz")
    assert found(tmp_path) == ["seen.csv.gz"]
    write(tmp_path, "seen.csv")
    assert found(tmp_path) == ["seen.csv"]


def test_a_table_without_names_is_looked_for_by_its_own_in_every_format():
    assert patterns("seen", FILMS) == ("films.csv",)
    assert {"seen.csv", "seen.jsonl", "seen.parquet"} <= {*patterns("seen", TableSpec())}
    assert patterns("seen", TableSpec(rows_at=("rows",))) == ("seen.json",)
    assert patterns("seen", TableSpec(entries=("user", "items"))) == ("seen.json",)


def test_a_table_without_a_file_and_a_place_that_is_none_have_the_nearest_name(tmp_path):
    write(tmp_path, "sen.csv")
    with pytest.raises(DataError, match="no file for table 'seen' of task 't'") as caught:
        find_tables(tmp_path, {"seen": SEEN}, task="t")
    assert (caught.value.where, caught.value.found) == (str(tmp_path), "a folder with sen.csv")
    assert caught.value.hint == "'sen.csv' is the nearest name"
    write(tmp_path, "films/a.csv")
    with pytest.raises(DataError, match="does not exist") as caught:
        find_tables(tmp_path / "filmz", {"seen": SEEN}, task="t")
    assert caught.value.hint == f"'{tmp_path / 'films'}' is the nearest name"
    with pytest.raises(DataError, match="does not exist") as caught:
        find_tables(tmp_path / "x" / "y", {"seen": SEEN}, task="t")
    assert caught.value.found == f"'{tmp_path / 'x'}' does not exist either"


def test_the_only_folder_that_holds_every_table_is_meant_and_a_glob_alone_makes_none(tmp_path):
    write(tmp_path, "logs/seen-1.csv")
    assert holder_of(tmp_path, {"seen": SEEN}, task="t") is None
    tables = {"seen": SEEN, "films": FILMS}
    write(tmp_path, "ml/seen.csv", "ml/films.csv", "part/seen.csv", ".hidden/seen.csv")
    assert holder_of(tmp_path, tables, task="t") == tmp_path / "ml"
    write(tmp_path, "other/seen.csv", "other/films.csv")
    assert holder_of(tmp_path, tables, task="t") is None
    write(tmp_path, "films.csv")
    assert holder_of(tmp_path, tables, task="t") == tmp_path


PEOPLE = {"people": TableSpec(columns={"user": Column()})}

ASK = SourceSpec(ask=AskSpec(steps=("Log in.", "Agree.", "Give --data DIR."), terms="no copies"))


def from_sources(*sources, said=None, **fetching):
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
    web.pages["/a.csv"] = Page(PAGE)
    web.pages["/b.csv"] = Page(PAGE + b"u3,3\n")
    said: list[str] = []
    data = from_sources(gone(web, kind), at(web, "a.csv"), at(web, "b.csv"), said=said)
    assert [row["user"] for _, row in data.table().rows()] == ["u1", "u2"]
    assert data.describe()["address"] == f"{web.url}/a.csv"
    assert [path for path, *_ in web.asked if path == "/b.csv"] == []
    assert [line for line in said if line.startswith("no data from ")]


def test_the_error_of_the_last_source_names_them_all(web):
    with pytest.raises(Unavailable) as caught:
        from_sources(gone(web, "403"), ASK)
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
    web.pages["/a.csv"] = Page(PAGE)
    first, second = at(web, "gone.csv"), at(web, "a.csv")
    from_sources(second)
    assert from_sources(first, second, offline=True).describe()["digest"] == sha256(PAGE)
    with pytest.raises(Unavailable) as caught:
        from_sources(first, at(web, "b.csv", digest=sha256(PAGE)), offline=True)
    for part in ("'gone.csv'", "'b.csv'", "because of --offline", sha256(PAGE), "--data"):
        assert part in str(caught.value)


def test_the_hub_is_a_source_among_others(web):
    web.pages["/a.csv"] = Page(PAGE)
    from_sources(at(web, "a.csv"))
    hub = SourceSpec(hub=HubSpec(repo="no-such-owner/no-such-set"))
    tables = {"people": TableSpec(split="train", columns={"user": Column()})}
    offline = Fetching(offline=True, say=lambda line: None)
    data = data_in(None, DataSpec(sources=(hub, at(web, "a.csv")), tables=tables), fetching=offline)
    assert data.origin == "url"


@pytest.mark.parametrize("kind", ["a wrong digest", "a full disk"])
def test_another_fault_is_no_reason_to_take_another_source(web, monkeypatch, kind):
    web.pages["/a.csv"] = web.pages["/b.csv"] = Page(PAGE)
    first = at(web, "a.csv", digest=sha256(b"other") if kind == "a wrong digest" else None)
    if kind == "a full disk":
        monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 1}))
    with pytest.raises((DataError, StorageError)) as caught:
        from_sources(first, at(web, "b.csv"))
    assert not isinstance(caught.value, Unavailable)
    assert [path for path, *_ in web.asked] == ["/a.csv"]


def test_several_tasks_try_once_what_cannot_be_had(web):
    web.pages["/a.csv"] = Page(PAGE)
    said: list[str] = []
    fetching = Fetching(say=said.append)
    for task in ("one", "two"):
        spec = DataSpec(sources=(gone(web, "404"), at(web, "a.csv")), tables=PEOPLE)
        data_in(None, spec, task=task, fetching=fetching)
    assert [path for path, *_ in web.asked].count("/gone.csv") == 1
    assert sum("no data from" in line for line in said) == 1

"""Opening data: where it is looked for, what is said when it is absent, what was read."""

import hashlib
import json
from typing import Any

import msgspec
import pytest
from builders.processes import run_python
from builders.tables import data_in
from builders.web_data import users

from harness.base.errors import DataError, HarnessError
from harness.contracts.task import Column, DataSpec, HubSpec, SourceSpec, TableSpec
from harness.data.dataset import choose
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


def test_what_was_read_is_described_by_its_bytes(tmp_path):
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


def test_the_fingerprint_follows_content_and_not_names(tmp_path):
    prints = []
    for name, text in (("a.csv", CSV), ("b.csv", CSV), ("c.csv", CSV + "u3,3\n")):
        (tmp_path / name).write_text(text)
        prints.append(opened(ONE, tmp_path / name).describe()["fingerprint"])
    assert prints[0] == prints[1] != prints[2]


def test_a_file_changed_after_reading_gets_no_fingerprint(tmp_path):
    (tmp_path / "mine.csv").write_text(CSV)
    data = opened(ONE, tmp_path / "mine.csv")
    users(data)
    (tmp_path / "mine.csv").write_text(CSV + "u3,3\n")
    with pytest.raises(DataError, match="changed while the run was using it"):
        data.describe()


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


def test_order_and_repeats_do_not_matter():
    assert choose([*reversed(IDS), *IDS], seed=0, most=7) == choose(IDS, seed=0, most=7)


def test_the_seed_matters_and_no_bound_keeps_all():
    first, _ = choose(IDS, seed=0, most=None)
    second, _ = choose(IDS, seed=1, most=None)
    assert sorted(first) == sorted(second) == sorted(IDS)
    assert first != second


def test_a_chosen_id_stays_chosen_when_others_come_or_go():
    chosen, _ = choose(IDS, seed=0, most=10)
    fewer, _ = choose([one for one in IDS if one not in chosen[:5]], seed=0, most=5)
    assert fewer == chosen[5:]

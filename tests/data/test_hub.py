"""The hub path against the real libraries: a hub on loopback, real caches, no network at all."""

import io
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq

FIRST = "1" * 40
SECOND = "2" * 40
DEAD = "http://127.0.0.1:9"

COLUMNS = {"user": {}, "text": {}, "n": {"type": "integer"}}


def spec(revision=None, **table):
    return {
        "sources": [{"hub": {"repo": "people/notes", "revision": revision}}],
        "tables": {"notes": {"columns": COLUMNS, **(table or {"split": "train"})}},
    }


def test_what_was_prepared_is_read_without_a_network_at_the_pinned_commit(hub, load, refused):
    assert load(spec("v1"), endpoint=hub.url)["about"]["asked_revision"] == "v1"
    load(spec(), endpoint=hub.url)
    newest = load(spec(), endpoint=DEAD)
    assert newest["tables"]["notes"][0]["text"] == "new", newest
    assert newest["about"]["revision"] == SECOND
    assert f"{DEAD} could not be reached" in newest["about"]["offline"]
    pinned = load(spec(FIRST), endpoint=DEAD)
    assert pinned["tables"]["notes"][0]["text"] == "old", pinned
    # Only a commit says what the data is, or a fact about it.
    assert (newest["about"]["comparable"], pinned["about"]["comparable"]) == (False, True)
    known = load({**spec(), "known": [{"table": "notes", "rows": 2}]}, endpoint=DEAD)
    assert known["about"]["comparable"]
    other = str(refused(spec("3" * 40), endpoint=DEAD))
    assert "neither reachable nor cached" in other
    assert "'people/notes' at revision '3333" in other


def test_offline_settings_ask_nothing_of_the_hub(hub, load):
    load(spec(), endpoint=hub.url)
    for setting in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        hub.asked.clear()
        result = load(spec(), endpoint=hub.url, **{setting: "1"})
        assert result["tables"]["notes"][0]["text"] == "new", result
        assert setting in result["about"]["offline"]
        assert hub.asked == []


def test_files_of_a_repository_make_a_table_and_are_found_again_offline(hub, load, refused):
    labels = {"hub_files": ["extra/*.csv"], "columns": {"user": {}, "label": {}}}
    online = load(spec(**labels), endpoint=hub.url)
    assert online["tables"]["notes"] == [{"user": "u1", "label": "rum"}], online
    assert online["about"]["tables"]["notes"]["files"] == [
        {"file": "extra/labels.csv", "bytes": 18}
    ]
    offline = load(spec(**labels), endpoint=DEAD)
    assert offline["tables"] == online["tables"], offline
    assert offline["about"]["fingerprint"] == online["about"]["fingerprint"]
    unfetched = str(refused(spec(hub_files=["train.jsonl"]), endpoint=DEAD))
    assert "train.jsonl" in unfetched
    assert "neither reachable nor cached" in unfetched


CARD = """---
configs:
- config_name: small
  data_files: [{split: train, path: small/train.parquet}]
- config_name: large
  data_files: [{split: train, path: large/train.parquet}, {split: test, path: large/test.parquet}]
---
"""


def parquet(users):
    stream = io.BytesIO()
    pq.write_table(pa.table({"user": users, "when": [datetime(2026, 1, 2)] * len(users)}), stream)
    return stream.getvalue()


def test_configurations_and_several_splits_are_read_online_and_offline(hub, load):
    hub.repos["people/many"] = {
        FIRST: {
            "README.md": CARD.encode(),
            "small/train.parquet": parquet(["s"]),
            "large/train.parquet": parquet(["a", "b"]),
            "large/test.parquet": parquet(["c"]),
        }
    }
    columns = {"user": {}, "when": {}}
    asked = {
        "sources": [{"hub": {"repo": "people/many", "config": "large"}}],
        "tables": {
            "known": {"split": "train", "columns": columns},
            "held_out": {"split": "test", "columns": columns},
        },
    }
    online = load(asked, endpoint=hub.url)
    day = "2026-01-02T00:00:00"
    assert online["tables"] == {
        "known": [{"user": "a", "when": day}, {"user": "b", "when": day}],
        "held_out": [{"user": "c", "when": day}],
    }, online
    assert online["about"]["config"] == "large"
    offline = load(asked, endpoint=DEAD)
    assert offline["tables"] == online["tables"], offline
    assert offline["about"]["fingerprint"] == online["about"]["fingerprint"]
    asked["sources"][0]["hub"]["config"] = "small"
    del asked["tables"]["held_out"]
    other = load(asked, endpoint=DEAD)
    assert other["tables"] == {"known": [{"user": "s", "when": day}]}, other


def test_a_cached_revision_does_not_stand_in_for_the_one_that_the_hub_named(hub, load, refused):
    def reply(path, body):
        if not path.startswith("/api/datasets/"):
            return answer(path, body)
        looked_up.append(path)
        return answer(path, body) if len(looked_up) == 1 else (500, {}, b"")

    del hub.repos["people/notes"][SECOND]
    load(spec(), endpoint=hub.url)
    hub.repos["people/notes"][SECOND] = hub.repos["people/notes"][FIRST]
    looked_up: list[str] = []
    answer, hub.reply = hub.reply, reply
    result = str(refused(spec(), endpoint=hub.url))
    assert "the revision of 'people/notes' changed while it was fetched" in result
    assert f"found:    revision {FIRST}" in result
    assert f"expected: revision {SECOND}" in result


def test_a_branch_that_was_never_looked_up_is_unknown_offline(hub, load, refused):
    load(spec(SECOND), endpoint=hub.url)
    load(spec(FIRST), endpoint=hub.url)
    assert "neither reachable nor cached" in str(refused(spec(), endpoint=DEAD))
    assert load(spec(FIRST), endpoint=DEAD)["about"]["revision"] == FIRST


def test_a_whole_snapshot_fetched_beforehand_serves_splits_offline(hub, load, fetch):
    del hub.repos["people/notes"][SECOND]["extra/labels.csv"]
    fetch("people/notes", endpoint=hub.url)
    result = load(spec(), endpoint=DEAD)
    assert result["tables"]["notes"][0]["text"] == "new", result
    assert result["about"]["revision"] == SECOND


def test_a_snapshot_with_gaps_is_not_taken_for_the_whole(hub, refused, fetch):
    hub.repos["people/notes"][SECOND]["train-2.jsonl"] = b'{"user": "u3", "text": "c", "n": 3}\n'
    fetch("people/notes", "train.jsonl", endpoint=hub.url)
    split = str(refused(spec(), endpoint=DEAD))
    assert "missing (extra/labels.csv, train-2.jsonl)" in split
    files = str(refused(spec(hub_files=["train*.jsonl"], columns=COLUMNS), endpoint=DEAD))
    assert "missing (train-2.jsonl)" in files


def test_a_folder_of_the_same_name_does_not_stand_in_for_the_hub(hub, load, tmp_path):
    decoy = tmp_path / "people" / "notes"
    decoy.mkdir(parents=True)
    (decoy / "train.jsonl").write_text('{"user": "decoy", "text": "x", "n": 1}\n')
    result = load(spec(), endpoint=hub.url)
    assert result["tables"]["notes"][0]["user"] == "u1", result
    assert (result["about"]["offline"], result["about"]["tables"]["notes"]["rows"]) == (None, 2)


def test_unknown_columns_and_configurations_name_what_there_is(hub, refused):
    column = str(refused(spec(split="train", columns={"person": {}}), endpoint=hub.url))
    assert "people/notes@2222222222 (default, train): column 'person' is missing" in column
    assert "columns user, text, n" in column
    config = spec()
    config["sources"][0]["hub"]["config"] = "small"
    assert "'default'" in str(refused(config, endpoint=hub.url))


def test_a_table_that_is_not_required_may_have_no_place_on_the_hub(hub, load, refused):
    asked = spec(hub_files=["train.jsonl"])
    alone = load(asked, endpoint=hub.url)
    asked["tables"]["profiles"] = {"required": False, "files": ["profiles.json"]}
    result = load(asked, endpoint=hub.url)
    assert set(result["tables"]) == {"notes"}, result
    assert result["about"]["fingerprint"] == alone["about"]["fingerprint"]
    asked["tables"]["profiles"]["hub_files"] = ["profiles.json"]
    assert "matches 'profiles.json'" in str(refused(asked, endpoint=hub.url))

"""What runs verified together, in memory and in files."""

import gzip
import json

import pytest
from harness_gistbench.oracle import Categories, doubts, gather, read, rescore, write
from harness_gistbench.records import SIGNALS, Counts, Judged, Options, Profile
from msgspec.structs import replace

from harness import DataError, Score

EMPTY = "users with no verified category to find"
MISSING = Score(id="cem", user="cem", missing={"ig_r": "predict/no_json"})


def score(user, *verified, unverified=(), **more):
    """The score of a user with one interest in each category, one of two objects found."""
    counts = {True: Counts(explicit_positive=2), False: Counts()}
    interests = tuple(
        Judged(name="", cited=2, category=id, counts=counts[id in verified], correct=1, backing=2)
        for id in (*verified, *unverified)
    )
    details = Profile(
        signals=SIGNALS, windows=1, unreadable=0, interests=interests, verified=verified
    )
    return Score(id=user, user=user, details=details, **more)


def test_the_runs_verify_together_what_any_of_them_verified():
    found = gather([score("ada", 31, 5), score("ben", 7), score("ada", 5, 110)])

    assert found == Categories({"ada": frozenset({31, 5, 110}), "ben": frozenset({7})})


def test_a_file_and_the_runs_are_united_its_users_first_and_the_new_ones_in_natural_order():
    known = Categories({"9": frozenset({1}), "2": frozenset()}, {"dataset": "toy"})

    found = gather([score(user, 325) for user in ("user 10", "10", "user 9", "9", "1")], known)

    assert found.others == {"dataset": "toy"}
    assert list(found.users) == ["9", "2", "1", "10", "user 9", "user 10"]
    assert found.users["9"] == {1, 325}
    assert known.users["9"] == {1}


def test_recall_falls_as_the_oracle_grows_and_nothing_else_changes():
    ada = score("ada", 31, 5, unverified=(7,))

    alone, together = (
        rescore(ada, Categories({"ada": frozenset(ids)}), Options())
        for ids in ({31, 5}, {31, 5, 110, 200, 7})
    )

    # precision is 2/3; recall 1 and then 2/5; their harmonic means 4/5 and 1/2; "is" is 1/2
    assert alone.values == pytest.approx(
        {"ig_p": 2 / 3, "ig_r": 1.0, "ig_f1": 4 / 5, "is": 1 / 2, "hm": 8 / 13, "verified": 2}
    )
    assert together.values == pytest.approx(
        {"ig_p": 2 / 3, "ig_r": 2 / 5, "ig_f1": 1 / 2, "is": 1 / 2, "hm": 1 / 2, "verified": 2}
    )


def test_users_whom_the_oracle_has_not_recall_nothing_and_are_counted():
    ada = rescore(score("ada", 31, counts={"windows": 3}), Categories({}), Options())

    assert (ada.values["ig_p"], ada.values["ig_r"], ada.values["ig_f1"]) == (1.0, 0.0, 0.0)
    assert ada.counts == {"windows": 3, EMPTY: 1}
    ada = score("ada", unverified=(31,), counts={"windows": 3, EMPTY: 1})

    assert rescore(ada, Categories({"ada": frozenset({31})}), Options()).counts == {"windows": 3}
    assert rescore(MISSING, Categories({"cem": frozenset({31})}), Options()) == MISSING


def test_a_file_is_written_as_it_was_read_with_keys_that_mean_nothing_here():
    text = b"""{
  "dataset": "toy",
  "made": {"by": ["hand", 1.5, null]},
  "oracle": {
    "9": [1, 31, 325],
    "2": [],
    "\\u00e4da": [5]
  }
}
"""

    oracle = read(text, Options())

    assert oracle.users == {"9": {1, 31, 325}, "2": set(), "äda": {5}}
    assert oracle.others == {"dataset": "toy", "made": {"by": ["hand", 1.5, None]}}
    assert write(oracle) == text


def test_ids_are_those_of_a_taxonomy_of_ones_own(tmp_path):
    file = tmp_path / "few.csv"
    file.write_text("category_id,category_name\n401,Tea\n7,Bread\n")
    few = Options(taxonomy=str(file))
    oracle = gather([score("ada", 401)])

    assert read(write(oracle), few) == oracle
    with pytest.raises(DataError, match="from 1 to 325"):
        read(write(oracle), Options())


def test_interests_that_runs_put_into_different_categories_are_told_with_an_example():
    def named(user, **categories):
        blank = score(user)
        interests = (Judged(name=name, cited=2, category=id) for name, id in categories.items())
        return replace(blank, details=replace(blank.details, interests=tuple(interests)))

    first = [named("ada", Jazz=31, Tea=5), named("ben", Golf=None), MISSING]
    second = [named("ada", JAZZ=110, Rye=7, Tea=5), named("ben", Golf=9)]

    assert list(doubts([*first, *second])) == [
        "1 of 4 distinct interests are in different categories in different runs, such as 'jazz' "
        "in 31 and 110: recall is wrong by them"
    ]
    assert list(doubts(first)) == list(doubts(second)) == []


@pytest.mark.real_data
def test_the_published_oracle_holds_91_054_pairs_of_997_users_and_is_written_whole(real_data):
    text = gzip.decompress((real_data / "gistbench/oracle_synthetic.json.gz").read_bytes())

    oracle = read(text, Options())

    assert len(oracle.users) == 997
    assert sum(len(ids) for ids in oracle.users.values()) == 91_054
    assert set().union(*oracle.users.values()) <= set(range(1, 326))
    assert json.loads(write(oracle)) == json.loads(text)
    assert list(read(write(oracle), Options()).users) == list(json.loads(text)["oracle"])

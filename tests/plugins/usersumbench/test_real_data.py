"""What is known of the real files, counted here without the plugin's code.

Of MovieLens 1M there are users 1 to 2998 only.
"""

import gzip
import json
from collections import Counter
from datetime import UTC, datetime
from math import comb
from statistics import fmean

import pytest
from builders.usersumbench import options
from harness_usersumbench.segments import segmented
from harness_usersumbench.sources import SOURCES

from harness.base.errors import DataError

from .conftest import load_people, opened

pytestmark = pytest.mark.real_data


class Films:
    """The ratings of MovieLens by user in order of time, then of the file."""

    def __init__(self, folder):
        self.genres = {}
        self.titles = {}
        for line in (folder / "movies.dat").read_text(encoding="iso-8859-1").splitlines():
            movie, title, genres = line.split("::")
            self.titles[movie], self.genres[movie] = title, tuple(genres.split("|"))
        rows = {}
        with gzip.open(folder / "ratings.dat.gz", "rt") as file:
            for place, line in enumerate(file):
                user, movie, _, time = line.strip().split("::")
                rows.setdefault(user, []).append((int(time), place, movie))
        self.all = {user: [(t, m) for t, _, m in sorted(own)] for user, own in rows.items()}
        self.long = {user: own for user, own in self.all.items() if len(own) >= 50}
        self.of_movie = Counter(movie for own in self.all.values() for _, movie in own)
        self.of_genre = Counter()
        for movie, count in self.of_movie.items():
            self.of_genre.update(dict.fromkeys(self.genres[movie], count))


@pytest.fixture(scope="module")
def films(real_data):
    return Films(real_data / "movielens-1m-part")


@pytest.fixture(scope="module")
def people(real_data):
    return load_people("movielens", real_data / "movielens-1m-part")


def test_users_with_50_ratings_are_kept_with_their_last_200(films, people):
    assert len(films.long) == 2095
    assert set(people.by_id) == set(films.long)
    cut = [user for user, own in films.long.items() if len(own) > 200]
    tied = [user for user, own in films.long.items() if own[-1][0] == own[-2][0]]
    assert (len(cut), round(100 * len(tied) / len(films.long))) == (752, 39)
    assert people.notes == {
        "users with at least 50 activities (4,297 in the paper)": 2095,
        "users with fewer than 50 activities, left out": 2998 - 2095,
        "users cut to their last 200 activities": 752,
        "users with several last activities at one time": len(tied),
    }
    for user, own in films.long.items():
        person = people.by_id[user]
        shown = [(one.time, one.name, one.categories) for one in (*person.past, person.future)]
        assert shown == [(t, films.titles[m], films.genres[m]) for t, m in own[-200:]]


def test_most_pasts_are_one_segment_of_months(films, people):
    def months_fill(own):
        counts = Counter(
            datetime.fromtimestamp(time, UTC).strftime("%Y-%m") for time, _ in own[-200:-1]
        )
        merged = 0
        for month in sorted(counts):
            merged += counts[month]
            if merged >= 20:
                return sum(count for later, count in counts.items() if later > month) < 20
        return True

    one = {user for user, own in films.long.items() if months_fill(own)}
    assert round(100 * len(one) / len(films.long)) == 78
    by_count = {each.id for each in people.all if segmented(each.past, options()).by == "count"}
    assert by_count == one


def test_the_most_popular_of_five_is_often_right(films, people):
    """The share of chance alone: the right answer is at least as frequent as all four others."""
    expected = {"activity": [], "category": []}
    for own in films.long.values():
        seen, last = {movie for _, movie in own}, own[-1][1]
        unseen = [count for movie, count in films.of_movie.items() if movie not in seen]
        rarer = sum(count <= films.of_movie[last] for count in unseen)
        expected["activity"].append(comb(rarer, 4) / comb(len(unseen), 4))
        others = [count for g, count in films.of_genre.items() if g not in films.genres[last]]
        expected["category"].append(
            fmean(
                comb(sum(count <= films.of_genre[genre] for count in others), 4)
                / comb(len(others), 4)
                for genre in films.genres[last]
            )
        )
    shares = {name: fmean(values) for name, values in expected.items()}
    assert [round(100 * share) for share in shares.values()] == [55, 55]
    for name, share in shares.items():
        drawn = [getattr(one, name).counts for one in people.all]
        found = fmean(counts[0] == max(counts) for counts in drawn)
        assert found == pytest.approx(share, abs=0.03)


def lines(file):
    with gzip.open(file, "rt", encoding="utf-8") as rows:
        return [json.loads(line) for line in rows]


def read(source, folder):
    """The rows of a source's activities and objects."""
    dataset, _ = opened(source, folder)
    queries = SOURCES[source].events, SOURCES[source].things
    return [dataset.database.sql(f"{query} ORDER BY row").fetchall() for query in queries]


def test_every_review_and_business_of_yelp_is_read(real_data):
    folder = real_data / "yelp"
    events, things = read("yelp", folder)
    reviews = lines(folder / "yelp_academic_dataset_review.json.gz")
    assert len(reviews) == 999
    times = (datetime.fromisoformat(one["date"]).replace(tzinfo=UTC) for one in reviews)
    assert [(user, item, time) for user, item, time, _ in events] == [
        (one["user_id"], one["business_id"], time.timestamp())
        for one, time in zip(reviews, times, strict=True)
    ]
    businesses = lines(folder / "yelp_academic_dataset_business.json.gz")
    assert len(businesses) == 1_000
    assert [(item, name, categories) for item, name, categories, _ in things] == [
        (one["business_id"], one["name"], one["categories"] and one["categories"].split(","))
        for one in businesses
    ]
    with pytest.raises(DataError, match="the data describes too few of the objects") as caught:
        load_people("yelp", folder)
    # Of 999 reviews, 77 are of these businesses.
    assert caught.value.found == "922 of 999 activities with an object without description"


def test_every_review_and_product_of_amazon_is_read(real_data):
    folder = real_data / "amazon-2023/All_Beauty/raw"
    events, things = read("amazon", folder)
    assert [(user, item, time) for user, item, time, _ in events] == [
        (one["user_id"], one["parent_asin"], one["timestamp"] // 1000)
        for one in lines(folder / "All_Beauty.jsonl.gz")
    ]
    assert [(item, name, categories) for item, name, categories, _ in things] == [
        (one["parent_asin"], one["title"], ["All Beauty"])
        for one in lines(folder / "meta_All_Beauty.jsonl.gz")
    ]
    with pytest.raises(DataError, match="too few categories") as caught:
        load_people("amazon", folder)
    assert "1 categories\n" in caught.value.found
    assert f"activities in the layout of 2023: {len(events):,}" in caught.value.found

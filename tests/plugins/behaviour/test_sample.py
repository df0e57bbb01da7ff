"""The bundled samples are what their generator makes, and hold something for every rule."""

import gzip
from collections import Counter

import pytest
from samples.behaviour import (
    FEW_PLAYS,
    MIN_PLAYS,
    SAMPLE,
    UNKNOWN_GENDER,
    UNRATED,
    write_movies,
    write_music,
)

from .checker import CONTINENTS, lines, read_movies, read_music

PROFILES = "userid-profile.tsv"
EVENTS = "userid-timestamp-artid-artname-traid-traname.tsv"


@pytest.fixture(scope="module")
def movies():
    return read_movies(SAMPLE / "movies")


@pytest.fixture(scope="module")
def music():
    return read_music(SAMPLE / "music", least=MIN_PLAYS)


def test_the_generator_makes_the_committed_files(tmp_path):
    write_movies(tmp_path / "movies")
    write_music(tmp_path / "music")
    files = sorted(file.relative_to(SAMPLE) for file in SAMPLE.glob("*/*"))
    assert files == sorted(file.relative_to(tmp_path) for file in tmp_path.glob("*/*"))
    for file in files:
        made, kept = ((folder / file).read_bytes() for folder in (tmp_path, SAMPLE))
        if file.suffix == ".gz":  # how a text is packed depends on the version of zlib
            made, kept = gzip.decompress(made), gzip.decompress(kept)
        assert made == kept
    assert sum((SAMPLE / file).stat().st_size for file in files) < 600_000


def test_users_of_movies_are_kept_and_removed_by_every_rule(movies):
    rows = [line.split("::") for line in lines(SAMPLE / "movies/users.dat", "iso-8859-1")]
    sizes = Counter((age, gender, occupation) for _, gender, age, occupation, _ in rows)
    other = {group for group in sizes if group[2] == "0"}
    small = {group for group in sizes if sizes[group] < 30}
    assert other - small
    assert 29 in sizes.values()
    assert 30 in sizes.values()
    assert {proxy: len(groups) for proxy, groups in movies.groups.items()} == {
        "none": 1, "age": 4, "gender": 2, "occupation": 3, "all": 6,
    }  # fmt: skip
    assert len(movies.demography) == sum(sizes.values()) - sum(sizes[g] for g in other | small)
    assert sum(not own for own in movies.things.values()) == UNRATED
    assert len(movies.inventory) == 400


def test_listeners_are_kept_and_removed_by_every_rule(music):
    rows = [line.split("\t") for line in lines(SAMPLE / "music" / PROFILES, "utf-8")[1:]]
    known = {country for countries in CONTINENTS.values() for country in countries}
    plays = Counter(line.split("\t")[0] for line in lines(SAMPLE / "music" / EVENTS, "utf-8"))
    few = {user for user, count in plays.items() if count < MIN_PLAYS}
    elsewhere = {row[0] for row in rows if row[3] and row[3] not in known}
    assert len(few) == FEW_PLAYS
    assert elsewhere
    assert music.demography.keys() == {row[0] for row in rows} - few - elsewhere
    assert sum(not gender for _, gender, *_ in rows) == UNKNOWN_GENDER
    assert {proxy: len(groups) for proxy, groups in music.groups.items()} == {
        "none": 1, "country": 7, "continent": 4, "gender": 2, "gender_continent": 8,
    }  # fmt: skip
    countries = Counter(row[3] for row in rows)
    assert ("Belgium",) not in music.groups["country"]
    assert 3 <= countries["Belgium"] < 9
    assert all(countries[name] >= 9 for (name,) in music.groups["country"])
    titles = [line.split("\t")[5] for line in lines(SAMPLE / "music" / EVENTS, "utf-8")]
    assert len(set(titles)) > len({title.casefold() for title in titles})

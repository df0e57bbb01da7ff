"""The bundled samples are what their generator makes, and hold something for every rule."""

import gzip
from collections import Counter

import pytest
from samples.behaviour import (
    COUNTRIES,
    FEW_PLAYS,
    GENRES,
    MIN_PLAYS,
    SAMPLE,
    SHARED,
    THEMES,
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


def test_movies_have_the_layout_of_movielens():
    titles = set()
    films = lines(SAMPLE / "movies/movies.dat", "iso-8859-1")
    for place, line in enumerate(films, 1):
        number, title, genre = line.split("::")
        assert number == str(place)
        assert genre in GENRES
        assert any(title.startswith(word) for theme in THEMES for word in theme.split())
        titles.add(title)
    assert len(titles) == len(films)
    for form in ("'s ", ", The (19", "é", "À ", " & ", ": Part II ("):
        assert any(form in title for title in titles)
    users = lines(SAMPLE / "movies/users.dat", "iso-8859-1")
    assert [line.split("::")[0] for line in users] == [str(one) for one in range(1, len(users) + 1)]
    ratings = [line.split("::") for line in lines(SAMPLE / "movies/ratings.dat", "iso-8859-1")]
    assert len({(user, film) for user, film, _, _ in ratings}) == len(ratings)
    for user, film, stars, time in ratings:
        assert 1 <= int(user) <= len(users)
        assert 1 <= int(film) <= len(films)
        assert 1 <= int(stars) <= 5
        assert int(time) < 2_000_000_000
    assert {film for _, film, _, _ in ratings} < {str(one) for one in range(1, len(films) + 1)}


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


def test_music_has_the_layout_of_last_fm():
    header, *profiles = lines(SAMPLE / "music" / PROFILES, "utf-8")
    assert header == "#id\tgender\tage\tcountry\tregistered"
    assert {line.split("\t")[1] for line in profiles} == {"m", "f", ""}
    assert {line.split("\t")[3] for line in profiles} == {*COUNTRIES}
    ids = [line.split("\t")[0] for line in profiles]
    assert ids == [f"user_{number:06}" for number in range(1, len(ids) + 1)]
    artists, users, times = {}, [], []
    for line in lines(SAMPLE / "music" / EVENTS, "utf-8"):
        user, time, artist_id, artist, track_id, track = line.split("\t")
        assert {len(artist_id), len(track_id)} <= {0, 36}
        assert artist
        assert track
        artists.setdefault(track.casefold(), set()).add(artist)
        users.append(user)
        times.append((user, time))
    assert users == sorted(users)
    assert set(users) == set(ids)
    assert all(len(artists[track.casefold()]) > 1 for track in SHARED)
    for user in ids:
        own = [time for one, time in times if one == user]
        assert own == sorted(own, reverse=True)


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

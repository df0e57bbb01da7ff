"""What is known of the real files, counted here without the plugin's code.

Of MovieLens 1M there are the ratings of users 1 to 2998 only, of last.fm 1K the profiles only.
"""

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from harness_behaviour import music
from samples.behaviour import MIN_PLAYS

from .checker import CONTINENTS, FEW, faulty, lines, read_movies, read_music
from .conftest import prompts_of

pytestmark = pytest.mark.real_data


@pytest.fixture(scope="module")
def profiles(real_data):
    """The gender and country of each listener."""
    file = real_data / "lastfm/1k-userid-profile.tsv"
    rows = [line.split("\t") for line in lines(file, "utf-8")[1:]]
    return [(gender, country) for _, gender, _, country, _ in rows]


def test_the_groups_of_movies_are_those_of_table_1(real_data):
    movies = read_movies(real_data / "movielens-1m-part")
    ages, genders, occupations = zip(*movies.demography.values(), strict=True)
    assert [len(set(one)) for one in (ages, genders, occupations)] == [7, 2, 17]
    assert len(set(movies.demography.values())) == 51
    assert len(movies.demography) == 3_727
    assert len(movies.inventory) == 3_883
    assert sum(map(bool, movies.things.values())) == 1_829


def test_the_groups_of_music_are_those_of_table_1(profiles):
    sizes = Counter(country for _, country in profiles)
    continents = {country: name for name, countries in CONTINENTS.items() for country in countries}
    assert len(profiles) == 992
    assert len(continents) == 17
    assert all(sizes[country] >= 9 for country in continents)
    others = {one for one, size in sizes.items() if size >= 9 and one and one not in continents}
    assert others == {"Turkey", "Australia"}
    both = {(gender, continents[country]) for gender, country in profiles if country in continents}
    assert len({one for one in both if one[0]}) == 8
    assert sum(not gender for gender, _ in profiles) == 108
    assert sizes[""] == 85


def test_the_table_of_continents_has_each_country_of_the_profiles(profiles):
    written = json.loads((Path(music.__file__).parent / "continents.json").read_text("utf-8"))
    countries = [country for own in written.values() for country in own]
    assert len(set(countries)) == len(countries)
    assert {country for _, country in profiles if country} <= set(countries)
    for name in music.CONTINENTS:
        ours = {*CONTINENTS[name], *FEW.get(name, ())}
        assert {country for _, country in profiles} & set(written[name]) == ours
    assert {"Turkey", "Armenia"} <= set(written["Asia"])


def test_real_profiles_with_invented_plays_give_the_prompts_without_history_of_table_1(
    real_data, tmp_path
):
    profiles = (real_data / "lastfm/1k-userid-profile.tsv").read_bytes()
    (tmp_path / "userid-profile.tsv").write_bytes(profiles)
    rng, plays = Random(5), []
    for line in profiles.decode().splitlines()[1:]:
        for _ in range(MIN_PLAYS):
            track = int(400 * rng.random() ** 2)
            user = line.split("\t")[0]
            plays.append(f"{user}\t2008-01-01T00:00:00Z\t\tBand {track % 9}\t\t{track}\n")
    events = tmp_path / "userid-timestamp-artid-artname-traid-traname.tsv"
    events.write_text("".join(plays), encoding="utf-8")
    made = prompts_of("music", tmp_path, tries=50)
    assert {one.proxy: one.groups for one in made.cells} == {
        "none": 1, "country": 17, "continent": 4, "gender": 2, "gender_continent": 8,
    }  # fmt: skip
    assert faulty(read_music(tmp_path, least=MIN_PLAYS), made.prompts) == {}

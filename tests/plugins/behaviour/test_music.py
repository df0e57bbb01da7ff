"""last.fm 1K: who is kept, what an item is, and files that cannot be used."""

from __future__ import annotations

import pytest
from harness_behaviour.music import continent_of

from harness.base.errors import DataError

RULES = {"min_interactions": 5, "min_users_per_country": 3}
TRACKS = [f"\tBand\t\tSong {number}" for number in range(60)]


def plays(*users, tracks=TRACKS, least=6):
    """Each user plays a few tracks, and the last user all of them."""
    rows = [
        f"{user}\t2009-05-01T10:00:0{place}Z\t{track}"
        for user in users
        for place, track in enumerate(tracks[:least])
    ]
    return [*rows, *(f"{users[-1]}\t2008-05-01T10:00:00Z\t{track}" for track in tracks[least:])]


def people(**given):
    """Rows of profiles, given gender and country of each user."""
    return [f"{user}\t{gender}\t\t{country}\t" for user, (gender, country) in given.items()]


NINE = {
    **dict.fromkeys(("a", "b", "c"), ("f", "Poland")),
    **dict.fromkeys(("d", "e", "f"), ("m", "Brazil")),
    **dict.fromkeys(("g", "h", "i"), ("m", "United Kingdom")),
}


def test_the_continents_are_those_of_the_method():
    continents = continent_of()
    assert {name: continents[name] for name in (
        "Turkey", "Russian Federation", "United Kingdom", "Mexico", "Panama", "Colombia", "Cyprus",
        "Ireland", "Trinidad and Tobago", "Guyana", "New Zealand", "Egypt", "Antarctica",
    )} == {
        "Turkey": "Asia", "Russian Federation": "Europe", "United Kingdom": "United Kingdom",
        "Mexico": "North America", "Panama": "North America", "Colombia": "South America",
        "Cyprus": "Asia", "Ireland": "Europe", "Trinidad and Tobago": "North America",
        "Guyana": "South America", "New Zealand": "Oceania", "Egypt": "Africa",
        "Antarctica": "Antarctica",
    }  # fmt: skip


def test_users_of_other_continents_and_with_few_plays_are_left_out(read_log, write_music):
    given = {**NINE, "j": ("f", "Turkey"), "k": ("f", "Poland")}
    events = [*plays("j", "k", least=4, tracks=TRACKS[:4]), *plays(*NINE)]
    log = read_log("music", write_music(profile=people(**given), events=events), **RULES)
    assert log.had.users == 9
    assert log.had.inventory == 60
    assert log.notes["users of another continent, left out"] == 1
    assert log.notes["users with fewer than 5 interactions, left out"] == 1
    assert [one.values for one in log.groups["gender_continent"]] == [
        ("Female", "Europe"),
        ("Male", "South America"),
        ("Male", "United Kingdom"),
    ]


def test_a_play_counts_each_time_and_a_track_once(read_log, write_music):
    events = [*plays(*NINE), *["a\tt\t\tBand\t\tSong 1"] * 3]
    log = read_log("music", write_music(profile=people(**NINE), events=events), **RULES)
    assert len(log.had.of(0)) == 6
    rules = {**RULES, "min_interactions": 9}
    with pytest.raises(DataError, match="no group of the proxy 'none'"):
        read_log("music", write_music(profile=people(**NINE), events=events, name="b"), **rules)


def test_the_inventory_has_the_tracks_of_users_who_are_left_out(read_log, write_music):
    given = {**NINE, "j": ("f", "Turkey")}
    events = [*plays(*NINE), "j\tt\t\tBand\t\tOnly in Turkey"]
    log = read_log("music", write_music(profile=people(**given), events=events), **RULES)
    assert "Only in Turkey — Band" in log.titles(range(log.had.inventory)).values()


def test_unknown_values_are_out_of_the_proxies_that_need_them(read_log, write_music):
    given = {**NINE, "j": ("", "Poland"), "k": ("f", "")}
    events = plays(*given)
    log = read_log("music", write_music(profile=people(**given), events=events), **RULES)
    users = {proxy: sum(len(one.users) for one in groups) for proxy, groups in log.groups.items()}
    assert [users[proxy] for proxy in ("none", "country", "continent", "gender")] == [
        11,
        10,
        10,
        10,
    ]
    assert (users["continent"], users["gender_continent"]) == (10, 9)
    assert log.notes["users of unknown gender, out of the proxies that need it"] == 1
    assert log.notes["users of unknown country, out of the proxies that need it"] == 1


def test_names_that_differ_in_case_and_space_are_one_track_with_the_usual_name(
    read_log, write_music
):
    names = ["Été  of 69", "été of 69", "ÉTÉ OF 69", "Été of\t69", "E\u0301te\u0301 of 69"]
    events = [*plays(*NINE), *(f"a\tt\t\tbAND \t\t{name}" for name in names)]
    log = read_log("music", write_music(profile=people(**NINE), events=events), **RULES)
    assert log.had.inventory == 61
    assert len(log.had.of(0)) == 7
    titles = set(log.titles(range(61)).values())
    assert {"Été of 69 — bAND", "Song 1 — Band"} < titles


def test_an_item_may_be_an_artist(read_log, write_music):
    tracks = [f"\tBand {number % 55}\t\tSong {number}" for number in range(60)]
    folder = write_music(profile=people(**NINE), events=plays(*NINE, tracks=tracks))
    log = read_log("music", folder, music_item="artist", **RULES)
    assert log.had.inventory == 55
    assert set(log.titles([0, 1, 2]).values()) == {"Band 0", "Band 1", "Band 10"}


def test_events_that_are_written_badly_are_read(read_log, write_music):
    """Bare returns, tabs in titles and quotation marks are text; times may be in any order."""
    odd = [
        "a\t2009-05-04T10:00:00Z\t\tBand\t\tIn two\rlines",
        "a\t2009-05-01T10:00:00Z\t\tBand\t\tIn\ttwo\tcells",
        'a\t2009-05-03T10:00:00Z\t\t"Band\t\tSong "1',
        "a\t2009-05-02T10:00:00Z\t\tBand\t\t",
        "a\t2009-05-02T10:00:00Z\t\tBand\t\t \u200b",
        "a\t2009-05-02T10:00:00Z\t\t\t\tSong 1",
    ]
    events = [*odd, *plays(*NINE)]
    log = read_log("music", write_music(profile=people(**NINE), events=events), **RULES)
    assert log.had.inventory == 63
    assert {"In two lines — Band", "In two cells — Band", 'Song "1 — "Band'} < set(
        log.titles(range(63)).values()
    )
    assert log.notes["events without a name of the track, left out"] == 3

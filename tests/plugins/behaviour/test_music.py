"""last.fm 1K: who is kept, what an item is, and files that cannot be used."""

import pytest
from harness_behaviour.music import continent_of

from harness.base.errors import DataError

from .conftest import log_of, music_files

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


@pytest.fixture
def read_log(tmp_path):
    """The log of the usual nine and others, with these events."""

    def read(events, *, name="lastfm", others=None, **rules):
        profile = people(**NINE, **(others or {}))
        folder = music_files(tmp_path, name=name, profile=profile, events=events)
        return log_of("music", folder, **{**RULES, **rules})

    return read


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


def test_users_of_other_continents_and_with_few_plays_are_left_out(read_log):
    events = [*plays("j", "k", least=4, tracks=TRACKS[:4]), *plays(*NINE)]
    log = read_log(events, others={"j": ("f", "Turkey"), "k": ("f", "Poland")})
    assert (log.had.users, log.had.inventory) == (9, 60)
    assert log.notes["users of another continent, left out"] == 1
    assert log.notes["users with fewer than 5 interactions, left out"] == 1
    assert [one.values for one in log.groups["gender_continent"]] == [
        ("Female", "Europe"),
        ("Male", "South America"),
        ("Male", "United Kingdom"),
    ]


def test_a_play_counts_each_time_and_a_track_once(read_log):
    events = [*plays(*NINE), *["a\tt\t\tBand\t\tSong 1"] * 3]
    assert len(read_log(events).had.of(0)) == 6
    with pytest.raises(DataError, match="no group of the proxy 'none'"):
        read_log(events, name="b", min_interactions=9)


def test_the_inventory_has_the_tracks_of_users_who_are_left_out(read_log):
    events = [*plays(*NINE), "j\tt\t\tBand\t\tOnly in Turkey"]
    log = read_log(events, others={"j": ("f", "Turkey")})
    assert "Only in Turkey — Band" in log.titles(range(log.had.inventory)).values()


def test_unknown_values_are_out_of_the_proxies_that_need_them(read_log):
    log = read_log(plays(*NINE, "j", "k"), others={"j": ("", "Poland"), "k": ("f", "")})
    users = {proxy: sum(len(one.users) for one in groups) for proxy, groups in log.groups.items()}
    ten = dict.fromkeys(("country", "continent", "gender"), 10)
    assert users == {"none": 11, **ten, "gender_continent": 9}
    assert log.notes["users of unknown gender, out of the proxies that need it"] == 1
    assert log.notes["users of unknown country, out of the proxies that need it"] == 1


def test_names_that_differ_in_case_and_space_are_one_track_with_the_usual_name(read_log):
    names = ["Été  of 69", "été of 69", "ÉTÉ OF 69", "Été of\t69", "E\u0301te\u0301 of 69"]
    events = [*plays(*NINE), *(f"a\tt\t\tbAND \t\t{name}" for name in names)]
    log = read_log(events)
    assert (log.had.inventory, len(log.had.of(0))) == (61, 7)
    titles = set(log.titles(range(61)).values())
    assert {"Été of 69 — bAND", "Song 1 — Band"} < titles


def test_an_item_may_be_an_artist(read_log):
    tracks = [f"\tBand {number % 55}\t\tSong {number}" for number in range(60)]
    log = read_log(plays(*NINE, tracks=tracks), music_item="artist")
    assert log.had.inventory == 55
    assert set(log.titles([0, 1, 2]).values()) == {"Band 0", "Band 1", "Band 10"}


def test_events_that_are_written_badly_are_read(read_log):
    """Bare returns, tabs in titles and quotation marks are text; times may be in any order."""
    odd = [
        "a\t2009-05-04T10:00:00Z\t\tBand\t\tIn two\rlines",
        "a\t2009-05-01T10:00:00Z\t\tBand\t\tIn\ttwo\tcells",
        'a\t2009-05-03T10:00:00Z\t\t"Band\t\tSong "1',
        "a\t2009-05-02T10:00:00Z\t\tBand\t\t",
        "a\t2009-05-02T10:00:00Z\t\tBand\t\t \u200b",
        "a\t2009-05-02T10:00:00Z\t\t\t\tSong 1",
    ]
    log = read_log([*odd, *plays(*NINE)])
    assert log.had.inventory == 63
    titles = set(log.titles(range(63)).values())
    assert {"In two lines — Band", "In two cells — Band", 'Song "1 — "Band'} < titles
    assert log.notes["events without a name of the track, left out"] == 3

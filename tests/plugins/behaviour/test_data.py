"""Logs and built prompts: what is read of them, and what is said of those that cannot be used."""

from functools import partial
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from harness_behaviour import data, movies
from harness_behaviour.building.draws import members_of
from harness_behaviour.building.prompt_files import fingerprint
from harness_behaviour.movies import titles_of
from harness_behaviour.music import continent_of
from harness_behaviour.records import Options, Prompt
from msgspec.structs import replace

from harness.base.errors import DataError, UsageError

from .conftest import FEW, load_prompts, log_of, movies_files, music_files, opened


@pytest.mark.parametrize("setting", ["a", "b", "c"])
def test_a_run_builds_what_the_tool_writes_and_each_setting_has_its_own_prompts(built, setting):
    options = {"setting": setting, **FEW}
    prompts, notes = made = load_prompts("movies", built.with_name("ml-1m"), **options)
    assert made == load_prompts("movies", built, **options)
    assert notes["cells with fewer prompts than the paper's Table 1"] > 0
    others = {one.setting for one in prompts if one.setting != setting}
    assert others == ({"none"} if setting == "c" else set())
    assert sum(one.setting == "none" for one in prompts) == len(others) < len(prompts)


def test_the_tasks_of_a_run_build_once(tmp_path, monkeypatch):
    reads, read = [], movies.read
    monkeypatch.setattr(movies, "read", lambda *given: reads.append(1) or read(*given))
    folder, shared = movies_files(tmp_path), {}
    for setting in "abc":
        load_prompts("movies", folder, shared=shared, setting=setting, **FEW)
    assert len(reads) == 1


def test_the_small_sample_needs_fewer_interactions_and_gives_fewer_prompts():
    for about, usual in (({"sample": "sample/music"}, (50, 100)), ({}, (5_000, 300))):
        for given, expected in (({}, usual), ({"min_interactions": 9, "kept": 8}, (9, 8))):
            options = Options(domain="music", **given)
            recipe = data.recipe_for(SimpleNamespace(about=about), options)
            assert (recipe.min_interactions, recipe.kept) == expected


USERS = [
    *(f"{n}::F::18::4::0" for n in range(30)),
    *(f"{n}::M::56::20::0" for n in range(30, 60)),
    *(f"{n}::M::1::10::0" for n in range(60, 89)),  # one too few
    *(f"{n}::M::56::0::0" for n in range(100, 140)),  # of occupation "other"
]


def ratings(*, by=range(60), each=20):
    return [f"{user}::{(user + movie) % 70}::3::1" for user in by for movie in range(each)]


def log_with(folder, rated, **named):
    """The log of these users with these ratings."""
    return log_of("movies", movies_files(folder, users=USERS, ratings=rated, **named))


def test_users_of_large_combinations_are_kept_rated_or_not_and_others_counted(tmp_path):
    log = log_with(tmp_path, ratings(by=[*range(85), *range(100, 140)]))
    assert log.had.users == 60
    numbers = {proxy: len(groups) for proxy, groups in log.groups.items()}
    assert numbers == {"none": 1, "age": 2, "gender": 2, "occupation": 2, "all": 2}
    assert {one.values: len(one.users) for one in log.groups["all"]} == {
        ("18-24", "Female", "college/grad student"): 30,
        ("56+", "Male", "writer"): 30,
    }
    assert {fact: number for fact, number in log.notes.items() if number} == {
        "users of occupation 'other', left out": 40,
        "users of combinations below 30 users, left out": 29,
    }
    # A user without a rating counts for the combination only.
    log = log_with(tmp_path, ratings(by=range(5, 60)), name="unrated")
    assert log.had.users == 55
    assert [len(one.users) for one in log.groups["all"]] == [25, 30]
    assert log.notes["users without a rating, left out"] == 5


def test_every_movie_is_in_the_inventory_rated_or_not_and_counts_once_where_rated_twice(tmp_path):
    log = log_with(tmp_path, [*ratings(each=1), "7::7::5::9", "8::7::1::2", "8::7::5::3"])
    assert log.had.inventory == 70
    titles = log.titles(range(70))
    assert set(titles.values()) == {f"Film ñ {n} (1999)" for n in range(70)}
    assert log.notes["repeated ratings of a movie by a user, counted once"] == 2
    [item] = [one for one, title in titles.items() if title == "Film ñ 7 (1999)"]
    # User 7 has movie 7 as the first, and user 8 as a second.
    assert len(members_of(log.had.bits[item])) == 2


@pytest.mark.real_data
def test_no_real_title_is_taken_for_utf_8(real_data):
    titles = titles_of(opened("movies", real_data / "movielens-1m-part").table("movies"))
    assert "Misérables, Les (1995)" in titles.values()
    assert sum(not title.isascii() for title in titles.values()) == 50


RULES = {"min_interactions": 5, "min_users_per_country": 3}
TRACKS = [f"\tBand\t\tSong {number}" for number in range(60)]


def plays(*users, tracks=TRACKS, least=6):
    """Each user plays a few tracks, and the last user all of them."""
    played = [(user, *one) for user in users for one in enumerate(tracks[:least])]
    rows = [f"{user}\t2009-05-01T10:00:0{place}Z\t{track}" for user, place, track in played]
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
    known = {
        "Turkey": "Asia", "Russian Federation": "Europe", "United Kingdom": "United Kingdom",
        "Mexico": "North America", "Panama": "North America", "Colombia": "South America",
        "Cyprus": "Asia", "Ireland": "Europe", "Trinidad and Tobago": "North America",
        "Guyana": "South America", "New Zealand": "Oceania", "Egypt": "Africa",
        "Antarctica": "Antarctica",
    }  # fmt: skip
    assert known.items() <= continent_of().items()


def test_users_of_other_continents_and_with_few_plays_are_left_out(read_log):
    events = [*plays("j", "k", least=4, tracks=TRACKS[:4]), *plays(*NINE)]
    log = read_log(events, others={"j": ("f", "Turkey"), "k": ("f", "Poland")})
    assert (log.had.users, log.had.inventory) == (9, 60)
    assert log.notes["users of another continent, left out"] == 1
    assert log.notes["users with fewer than 5 interactions, left out"] == 1
    expected = [("Female", "Europe"), ("Male", "South America"), ("Male", "United Kingdom")]
    assert [one.values for one in log.groups["gender_continent"]] == expected


def test_a_play_counts_each_time_and_a_track_once(read_log):
    events = [*plays(*NINE), *["a\tt\t\tBand\t\tSong 1"] * 3, "j\tt\t\tBand\t\tOnly in Turkey"]
    log = read_log(events, others={"j": ("f", "Turkey")})
    assert len(log.had.of(0)) == 6
    # The inventory has the tracks of users who are left out.
    assert "Only in Turkey — Band" in log.titles(range(log.had.inventory)).values()
    with pytest.raises(DataError, match="no group of the proxy 'none'"):
        read_log(events[:-1], name="b", min_interactions=9)


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


def test_the_fingerprint_is_of_everything_in_a_prompt_and_the_same_everywhere():
    usual = Prompt(
        id="movies/all/3/001", user="movies/all/3/001", setting="a", proxy="all", length=3,
        group=("25-34", "Male", "clerical/admin"), users=3, counts=(1, 2), popular=(5, 2),
        history=("Schindler's List (1993)", "À nous la liberté (1931)", "M"),
        candidates=("Heat (1995)", "Big (1988)"), popular_in_group=(1, 2),
    )  # fmt: skip
    assert fingerprint((usual,)) == "3c71036af0d1557f4a29a934af2f4528"
    for change in ({"users": 4}, {"counts": (1, 3)}, {"group": ("25-34", "Male")}):
        assert fingerprint((replace(usual, **change),)) != fingerprint((usual,))


FILMS = [f"{n}::Film {n}::D" for n in range(70)]
MOVIES = [
    ({"users": ["1::F::17::4::0"]}, "users.dat, row 1, column 'age'", "'17'",
     "one of: 1, 18, 25, 35, 45, 50, 56"),
    ({"users": ["1::F::18::4::0"] * 2}, "users.dat, row 2, column 'user'", "'1'", "each user once"),
    ({"ratings": ["1::1::5::1", "99::1::5::1", "98::1::5::1"]},
     "ratings.dat, row 2, column 'user'", "'99'", "a user in the table 'users'"),
    ({"ratings": ["1::1::5::1", "1::70::5::1"]},
     "ratings.dat, row 2, column 'movie'", "'70'", "a movie in the table 'movies'"),
    ({"movies": [*FILMS, "3::Film::D"]}, "movies.dat, row 71, column 'movie'", "'3'",
     "each movie once"),
    ({"movies": [*FILMS, "71::Film  3::D"]}, "movies.dat, row 71, column 'title'",
     "'Film 3'", "a title of its own: movie 3 has it"),
    ({"movies": FILMS[:49]}, "the table 'movies'", "49 items", "at least 50"),
    ({"users": USERS, "ratings": ratings(by=[0, 1, 30, 31])}, "the tables 'users' and 'ratings'",
     "2 groups; the largest has 2 users", "at least one group of 3 users who can be used"),
    ({"users": [*USERS[60:], "140::F::25::12::0"], "ratings": ratings(by=range(100, 140))},
     "the tables 'users' and 'ratings'",
     "40 users of occupation 'other', 30 of combinations of age, gender and occupation below 30 "
     "users (the largest of all has 40), 0 without a rating",
     "a combination of 30 users: all of users.dat, not a part of it"),
    ({"users": [row.replace("::", "\t") for row in USERS]}, "users.dat, row 1", "1 cell",
     "5 cells, separated by '::'"),
]  # fmt: skip
MUSIC = [
    ({"profile": people(**{**NINE, "z": ("x", "Poland")})},
     "userid-profile.tsv, row 10, column 'gender'", "'x'", "one of: f, m, or nothing"),
    ({"profile": people(a=("f", "Atlantis"))},
     "userid-profile.tsv, row 1, column 'country'", "'Atlantis'",
     "a country as last.fm writes it, or nothing"),
    ({"profile": people(a=("f", "Poland")) * 2},
     "userid-profile.tsv, row 2, column 'user'", "'a'", "each user once"),
    ({"events": plays("a", "zz")}, "traname.tsv, row 7, column 'user'", "'zz'",
     "a user in the table 'profile'"),
    ({"events": ["a\tt\t\tBand"]}, "traname.tsv, row 1", "4 cells", "6 cells"),
    ({"events": plays(*NINE, tracks=TRACKS[:49])}, "the table 'events'", "49 items", "at least 50"),
]  # fmt: skip


@pytest.mark.parametrize("row", [*MOVIES, *MUSIC], ids=lambda row: row[1])
def test_a_log_that_cannot_be_used(tmp_path, row):
    files, where, found, expected = row
    with pytest.raises(DataError) as raised:
        if row in MOVIES:
            log_of("movies", movies_files(tmp_path, **files))
        else:
            usual = {"profile": people(**NINE), "events": plays(*NINE)}
            log_of("music", music_files(tmp_path, **{**usual, **files}), **RULES)
    assert raised.value.where.endswith(where)
    assert raised.value.found.startswith(found)
    assert raised.value.expected.startswith(expected)


def test_nobody_who_listened_enough(raised, read_log):
    load = partial(read_log, plays(*NINE), min_interactions=5_000)
    found = "the most of one user are 60"
    assert raised(DataError, load, where="the table 'events'", found=found) == (
        "no user has 5,000 interactions\n"
        "expected: a user of Europe, North America, South America, United Kingdom with 5,000\n"
        "to do: --set min_interactions=N"
    )


def test_titles_in_utf_8_are_not_read_as_latin_1(tmp_path):
    file = movies_files(tmp_path) / "movies.dat"
    file.write_bytes(file.read_bytes().decode("iso-8859-1").encode("utf-8"))
    with pytest.raises(DataError, match="a value that cannot be used") as raised:
        log_of("movies", file.parent)
    assert raised.value.where.endswith("movies.dat, row 1, column 'title'")
    assert raised.value.expected == (
        "a file in ISO-8859-1, as MovieLens 1M is, not in UTF-8: "
        "iconv -f UTF-8 -t ISO-8859-1 movies.dat"
    )


@pytest.mark.parametrize(
    "case",
    [
        ("movies", {"seed": 4}, "seed=0", "seed=4", "build them again, or give --set seed=0"),
        ("movies", {"kept": 300, "draws": "popularity"}, "kept=10, draws=uniform",
         "kept=300, draws=popularity",
         "build them again, or give --set kept=10 --set draws=uniform"),
        ("music", {}, "domain=movies", "domain=music",
         "name the tasks of this domain: behaviour_movies"),
    ],
)  # fmt: skip
def test_prompts_of_other_options(raised, built, case):
    domain, options, found, expected, to_do = case
    load = partial(load_prompts, domain, built, **{**FEW, **options})
    where = "DIR/prompts/prompts.parquet"
    assert raised(UsageError, load, where=where, found=f"built with {found}") == (
        "the prompts were built with other options than the task has\n"
        f"expected: {expected}, as the task says\nto do: {to_do}"
    )


PARQUET, RECORD = "prompts.parquet", "prompts.json"
DAMAGED = {
    "cut short": (
        PARQUET, lambda file: pq.write_table(pq.read_table(file).slice(0, 1), file),
        "changed after they were built", "1 prompts with the fingerprint ", None),
    "torn": (
        PARQUET, lambda file: file.write_bytes(file.read_bytes()[:1000]),
        "cannot be read as Parquet", "", None),
    "without counts": (
        PARQUET, lambda file: pq.write_table(pq.read_table(file).drop_columns(["counts"]), file),
        "a prompt cannot be used", "Expected `array`, got `null` - at `$.counts`",
        "build them again of the same log; older prompts lack the column 'counts'"),
    "an odd record": (
        RECORD, lambda file: file.write_text(file.read_text("utf-8").replace('"length"', '"long"')),
        "prompts.json cannot be used",
        "Object missing required field `length` - at `$.cells[0]`", None),
    "no record": (
        PARQUET, lambda file: file.with_name(RECORD).unlink(),
        "built prompts lack prompts.json", "", None),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGED)
def test_built_prompts_that_were_changed(built, damage):
    name, change, said, found, hint = DAMAGED[damage]
    file = built / name
    change(file)
    with pytest.raises(DataError) as raised:
        load_prompts("movies", built, **FEW)
    assert raised.value.where == str(file)
    assert said in str(raised.value)
    assert (raised.value.found or "").startswith(found)
    assert hint in (None, raised.value.hint)


def test_folders_without_the_files_of_a_domain(tmp_path):
    folder = movies_files(tmp_path)
    (folder / "ratings.dat").unlink()
    with pytest.raises(DataError) as raised:
        load_prompts("movies", folder)
    assert str(raised.value) == (
        f"{folder}: the data of movies lacks ratings.dat\n"
        "  found:    the tables users, movies\n"
        "  expected: users.dat, ratings.dat, movies.dat; or built prompts, prompts.parquet with "
        "prompts.json"
    )
    with pytest.raises(DataError, match=r"lacks userid-profile\.tsv and userid-ti") as raised:
        load_prompts("music", tmp_path)
    assert raised.value.found == "no table"


def test_what_the_data_tools_refuse(printed, built, tmp_path):
    def said(name, *options, code):
        return printed("data", f"behaviour-{name}", *map(str, options), code=code).err

    log, gone = movies_files(tmp_path, shuffle=3, name="other"), tmp_path / "gone"
    assert said("describe", "--data", built, "--from", log, code=2) == (
        f"harness: --from {log}: the prompts were not built from this log\n"
        "  found:    other content in movies.dat, ratings.dat, users.dat\n"
        "  expected: the files whose digests stand in prompts.json\n"
    )
    assert said("describe", "--data", log, code=1) == (
        f"harness: {log}: there are no built prompts\n"
        "  expected: prompts.parquet with prompts.json\n"
        "  to do:    `harness data behaviour-prompts --from DIR --out OUT` builds them\n"
    )
    assert said("prompts", "--from", gone, "--out", tmp_path / "out", code=2) == (
        f"harness: --from {gone}: the folder does not exist\n"
        "  expected: an existing folder, or `sample`\n"
    )
    filled = said("prompts", "--from", log, "--out", log, code=2)
    assert "the folder for the prompts is not empty" in filled

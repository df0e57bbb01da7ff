"""What is said of logs and built prompts that cannot be used: where, found, expected, to do."""

import json

import pyarrow.parquet as pq
import pytest

from harness.base.errors import DataError, UsageError

from .conftest import FEW, load_prompts, log_of, movies_files, music_files
from .test_movies import USERS, ratings
from .test_music import NINE, RULES, TRACKS, people, plays

FILMS = [f"{n}::Film {n}::D" for n in range(70)]
USER = "1::F::18::4::0"
MOVIES = [
    ({"users": ["1::F::17::4::0"]}, "users.dat, row 1, column 'age'", "'17'",
     "one of: 1, 18, 25, 35, 45, 50, 56"),
    ({"users": [USER] * 2}, "users.dat, row 2, column 'user'", "'1'", "each user once"),
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


@pytest.mark.parametrize(
    ("domain", "row"), [*(("movies", row) for row in MOVIES), *(("music", row) for row in MUSIC)]
)
def test_a_log_that_cannot_be_used(tmp_path, domain, row):
    files, where, found, expected = row
    if domain == "movies":
        folder, rules = movies_files(tmp_path, **files), {}
    else:
        usual = {"profile": people(**NINE), "events": plays(*NINE)}
        folder, rules = music_files(tmp_path, **{**usual, **files}), RULES
    with pytest.raises(DataError) as raised:
        log_of(domain, folder, **rules)
    assert raised.value.where.endswith(where)
    assert raised.value.found.startswith(found)
    assert raised.value.expected.startswith(expected)


def test_nobody_who_listened_enough(tmp_path):
    with pytest.raises(DataError) as raised:
        log_of("music", music_files(tmp_path, profile=people(**NINE), events=plays(*NINE)))
    assert str(raised.value) == (
        "the table 'events': no user has 5,000 interactions\n"
        "  found:    the most of one user are 60\n"
        "  expected: a user of Europe, North America, South America, United Kingdom with 5,000\n"
        "  to do:    --set min_interactions=N"
    )


def test_titles_in_utf_8_are_not_read_as_latin_1(tmp_path):
    folder = movies_files(tmp_path)
    file = folder / "movies.dat"
    file.write_bytes(file.read_bytes().decode("iso-8859-1").encode("utf-8"))
    with pytest.raises(DataError, match="a value that cannot be used") as raised:
        log_of("movies", folder)
    assert raised.value.where.endswith("movies.dat, row 1, column 'title'")
    assert raised.value.expected == (
        "a file in ISO-8859-1, as MovieLens 1M is, not in UTF-8: "
        "iconv -f UTF-8 -t ISO-8859-1 movies.dat"
    )


@pytest.mark.parametrize(
    ("asked", "found", "expected", "to_do"),
    [
        (("movies", {"seed": 4}), "seed=0", "seed=4", "build them again, or give --set seed=0"),
        (("movies", {"kept": 300, "draws": "popularity"}), "kept=10, draws=uniform",
         "kept=300, draws=popularity",
         "build them again, or give --set kept=10 --set draws=uniform"),
        (("music", {}), "domain=movies", "domain=music",
         "name the tasks of this domain: behaviour_movies"),
    ],
)  # fmt: skip
def test_prompts_of_other_options(built, asked, found, expected, to_do):
    domain, options = asked
    with pytest.raises(UsageError) as raised:
        load_prompts(domain, built, **{**FEW, **options})
    assert str(raised.value) == (
        f"{built / 'prompts.parquet'}: "
        "the prompts were built with other options than the task has\n"
        f"  found:    built with {found}\n"
        f"  expected: {expected}, as the task says\n"
        f"  to do:    {to_do}"
    )


def without_counts(folder):
    table = pq.read_table(folder / "prompts.parquet")
    pq.write_table(table.drop_columns(["counts"]), folder / "prompts.parquet")


def cut_short(folder):
    table = pq.read_table(folder / "prompts.parquet")
    pq.write_table(table.slice(0, 1), folder / "prompts.parquet")


def torn(folder):
    file = folder / "prompts.parquet"
    file.write_bytes(file.read_bytes()[:1000])


def with_an_odd_record(folder):
    record = json.loads((folder / "prompts.json").read_text("utf-8"))
    record["cells"] = [{"proxy": "all"}]
    (folder / "prompts.json").write_text(json.dumps(record), encoding="utf-8")


DAMAGED = {
    cut_short: ("prompts.parquet", "changed after they were built",
                "1 prompts with the fingerprint ", None),
    torn: ("prompts.parquet", "cannot be read as Parquet", "", None),
    without_counts: ("prompts.parquet", "a prompt cannot be used",
                     "Expected `array`, got `null` - at `$.counts`",
                     "build them again of the same log; older prompts lack the column 'counts'"),
    with_an_odd_record: ("prompts.json", "prompts.json cannot be used",
                         "Object missing required field `length` - at `$.cells[0]`", None),
    lambda folder: (folder / "prompts.json").unlink(): (
        "prompts.parquet", "built prompts lack prompts.json", "", None),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGED, ids=lambda damage: damage.__name__)
def test_built_prompts_that_were_changed(built, damage):
    damage(built)
    with pytest.raises(DataError) as raised:
        load_prompts("movies", built, **FEW)
    file, said, found, hint = DAMAGED[damage]
    assert raised.value.where == str(built / file)
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

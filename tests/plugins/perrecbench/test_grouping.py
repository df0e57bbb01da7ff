"""Groups built from hand-made review logs: rules, windows, draws, files, and their description."""

import json
import sys
from importlib.machinery import ModuleSpec
from itertools import combinations
from random import Random
from types import ModuleType, SimpleNamespace

import pytest
from builders.processes import run_here, run_python
from builders.texts import write_json_lines
from harness_perrecbench.grouping import build as groups_tool
from harness_perrecbench.grouping import describe as describe_tool
from harness_perrecbench.grouping.describe import Options
from harness_perrecbench.grouping.pool import best_window, first_largest, largest
from harness_perrecbench.grouping.reading import Settings

from harness.base.errors import DataError, UsageError

DAY = 86_400_000
START = 1_600_000_000_000
"""Times count milliseconds; days below are from this moment."""


def rated(user, item, rating, day):
    time = START + round(day * DAY)
    return {"user_id": user, "parent_asin": item, "rating": rating, "timestamp": time}


def person(user, relative, day, *, item="thing", before=1):
    """A user of average 3 who rated the item that much above it, after so many other ratings."""
    return [
        rated(user, item, 3 + relative, day),
        rated(user, f"own of {user}", 3 - relative, day - 100),
        *(
            rated(user, f"own {number} of {user}", 3, day - 100 + number)
            for number in range(1, before)
        ),
    ]


@pytest.fixture
def build(tmp_path):
    """Builds the groups of rows, with rules so loose that only those given decide.

    Items are titled after their ids but those `untitled`.
    """

    def made(*people, untitled=(), meta=None, **changed):
        rows = [row for one in people for row in one]
        items = dict.fromkeys(row["parent_asin"] for row in rows if row["parent_asin"])
        titles = ((item, " " if item in untitled else f"A {item}") for item in items)
        meta = meta or [{"parent_asin": item, "title": title} for item, title in titles]
        write_json_lines(tmp_path / "meta.jsonl", meta)
        made.number = getattr(made, "number", 0) + 1
        out = tmp_path / f"out-{made.number}"
        log = write_json_lines(tmp_path / "log.jsonl", rows)
        loose = {"min_history": 0, "least_members": 2, "behaviours": 0}
        reviews = tuple(changed.pop("reviews", [str(log)]))
        files = {"reviews": reviews, "meta": (tmp_path / "meta.jsonl",), "out": out}
        made.report = groups_tool.run(Settings(**files, **{**loose, **changed}))
        return out

    return made


def read(out, name, folder="all"):
    return json.loads((out / folder / f"{folder}-processed" / f"{name}.json").read_bytes())


def groups(out, level="easy", *, held_out=False, folder="all"):
    """The users of each group, by name."""
    name = f"held_out-{level}" if held_out else f"item2group_avg_diff_sample-{level}"
    found = read(out, name, folder).items()
    return {item: sorted(user["user_id"] for user in group) for item, [group] in found}


def nothing(build, *people, **changed):
    with pytest.raises(DataError, match="no item passes all rules"):
        build(*people, **changed)


@pytest.mark.parametrize("unit", [1, 1000], ids=["milliseconds", "seconds"])
def test_users_are_grouped_who_rated_at_both_ends_of_a_window_in_any_unit_of_time(build, unit):
    ann, bob = (
        [{**row, "timestamp": row["timestamp"] // unit} for row in person(name, relative, day)]
        for name, relative, day in (("ann", 0, 0), ("bob", 1, 30))
    )
    assert groups(build(ann, bob, window_days=30)) == {"thing": ["ann", "bob"]}
    nothing(build, ann, bob, window_days=30 - unit / DAY)


def test_users_need_more_earlier_ratings_than_the_least(build):
    many = [person("ann", 0, 0, before=21), person("bob", 1, 0, before=21)]
    few = person("cem", -1, 0, before=20)
    assert groups(build(*many, few, min_history=20)) == {"thing": ["ann", "bob"]}
    nothing(build, many[0], few, min_history=20)
    # What was rated at the same moment is not earlier.
    bob = [*person("bob", 1, 0, before=2), rated("bob", "a thing first by name", 3, 0)]
    out = build(person("ann", 0, 0), bob)
    [users] = read(out, "item2group_avg_diff_sample-easy")["thing"]
    assert {user["user_id"]: user["history_len"] for user in users} == {"ann": 1, "bob": 2}
    latest = [one["parent_asin"] for one in read(out, "userid2history")["bob"]][2:]
    assert latest == ["a thing first by name", "thing"]
    nothing(build, person("ann", 0, 0, before=3), bob, min_history=2)


def test_first_reviews_count_alone_and_averages_are_whole_or_strictly_of_what_is_earlier(build):
    again = [*person("bob", 1, 0), rated("bob", "thing", 1, 1), rated("bob", "thing", 2, 0)]
    # The two at one moment: the lower counts, so that bob's average is 2 and his relative rating 0.
    out = build(person("ann", 1, 0), again)
    [users] = read(out, "item2group_avg_diff_sample-easy")["thing"]
    found = {user["user_id"]: (user["relative_rating"], user["avg_rating"]) for user in users}
    assert found == {"ann": (1.0, 3.0), "bob": (0.0, 2.0)}
    assert [one["rating"] for one in read(out, "userid2history")["bob"]] == [2.0, 2.0]
    later = rated("ann", "later", 5, 50)
    two = [*person("ann", 1, 0), later, *person("bob", -1, 0)]
    for strict, ann, bob in ((False, (4 - 11 / 3, 11 / 3), (-1, 3)), (True, (2, 2), (-2, 4))):
        [users] = read(build(two, strict=strict), "item2group_avg_diff_sample-easy")["thing"]
        found = {one["user_id"]: (one["relative_rating"], one["avg_rating"]) for one in users}
        assert found == {"ann": pytest.approx(ann), "bob": pytest.approx(bob)}


def six(item="thing"):
    """Six users who are all apart."""
    return [
        person(f"{name} of {item}", relative, 0, item=item)
        for name, relative in zip("abcdef", (-2, -1.2, -0.4, 0.4, 1.2, 2), strict=True)
    ]


def test_an_item_keeps_at_most_five_users_by_a_stable_hash(build):
    levels = ("easy", "medium", "hard")

    def drawn(**changed):
        out = build(*six(), **changed)
        return frozenset(user for level in levels for user in groups(out, level)["thing"])

    of_seeds = [drawn(seed=seed) for seed in range(4)]
    assert drawn() == of_seeds[0]
    assert all(len(users) <= 5 for users in of_seeds) and len(set(of_seeds)) > 1
    assert [row[1] for row in build.report.sheets[0].rows[-2:]] == [6, 5]
    # Of users who cannot both be in a group, a stable hash takes one.
    people = [
        person(f"{name} {number}", relative, 0, item=f"thing {number}")
        for number in range(12)
        for name, relative in (("ann", 0), ("amy", 0.1), ("bob", 1))
    ]
    taken = groups(build(*people)).values()
    names = {tuple(user.partition(" ")[0] for user in users) for users in taken}
    assert names == {("amy", "bob"), ("ann", "bob")}


def test_levels_and_behaviours_are_drawn_independently_by_seed(build):
    out = build(*(one for item in range(12) for one in six(f"thing {item}")), test_items=8)
    easy, medium, hard = (groups(out, level) for level in ("easy", "medium", "hard"))
    for level, members in ((easy, 2), (medium, 3), (hard, 4)):
        assert {len(one) for one in level.values()} == {members}
    assert list(easy) == list(medium) == list(hard)
    assert len(easy) == 8
    assert {set(easy[item]) <= set(medium[item]) for item in easy} == {True, False}
    people = [one for item in range(10) for one in six(f"thing {item}")]
    built = [build(*people, behaviours=20, seed=seed) for seed in (0, 0, 1)]
    drawn = [read(out, "drawn_behavior") for out in built]
    assert len({(one["user_id"], one["parent_asin"]) for one in drawn[0]}) == 20
    assert drawn[0] == drawn[1] != drawn[2]
    assert {one["user_id"] for one in drawn[0]} <= read(built[0], "userid2history").keys()


def test_the_files_are_in_the_published_layout_with_authors_and_the_first_of_several_titles(build):
    ann, bob = person("ann", 0.5, 0), person("bob", -0.5, 2)
    out = build(ann, bob, behaviours=1000)
    assert sorted(path.name for path in (out / "all/all-processed").iterdir()) == [
        "drawn_behavior.json", "item2group_avg_diff_sample-easy.json", "parentasin2item.json",
        "userid2history.json",
    ]  # fmt: skip
    [[users]] = read(out, "item2group_avg_diff_sample-easy").values()
    assert sorted(users, key=lambda user: user["user_id"]) == [
        {"user_id": user, "history_len": 1, "relative_rating": relative, "avg_rating": 3.0}
        for user, relative in (("ann", 0.5), ("bob", -0.5))
    ]
    assert read(out, "userid2history")["bob"] == [
        {"parent_asin": "own of bob", "rating": 3.5, "timestamp": START - 98 * DAY},
        {"parent_asin": "thing", "rating": 2.5, "timestamp": START + 2 * DAY},
    ]
    assert read(out, "parentasin2item")["thing"] == {"title": "A thing"}
    assert read(out, "drawn_behavior") == [
        {**rated(user, "thing", rating, day), "history_len": 1}
        for user, rating, day in (("ann", 3.5, 0), ("bob", 2.5, 2))
    ]
    told = [
        {"parent_asin": "thing", "title": "Zest", "author": {"name": "Z"}},
        {"parent_asin": "thing", "title": "Ash", "author": {"avatar": "x", "name": " A. Tree "}},
        {"parent_asin": "own of ann", "title": "Own", "author": None},
        {"parent_asin": "own of bob", "title": "Own too", "author": "B. Bob"},
    ]
    out = build(person("ann", 0, 0), person("bob", 1, 0), meta=told)
    assert read(out, "parentasin2item") == {
        "own of ann": {"title": "Own"},
        "own of bob": {"title": "Own too", "author": {"name": "B. Bob"}},
        "thing": {"title": "Ash", "author": {"name": "A. Tree"}},
    }


def test_each_domain_has_a_folder_and_what_it_tests_is_held_out_nowhere(build, tmp_path):
    logs, people = [], []
    for domain in ("book", "kitchen"):
        own = [one for item in range(6) for one in six(f"{domain} {item}")]
        rows = [row for one in own for row in one]
        logs.append(f"{domain}={write_json_lines(tmp_path / f'{domain}.jsonl', rows)}")
        people += own
    out = build(*people, reviews=logs, test_items=4, domain_items=3)
    tested, all_held = groups(out), groups(out, held_out=True)
    assert len(tested) == 4
    for domain in ("book", "kitchen"):
        own = groups(out, folder=domain)
        assert len(own) == 3
        assert all(item.startswith(domain) for item in own)
        held = groups(out, held_out=True, folder=domain)
        assert held
        assert not held.keys() & {*own, *tested}
        assert not all_held.keys() & own.keys()
        assert held.keys() <= all_held.keys()
        known = read(out, "userid2history", domain)
        assert all(user in known for users in [*own.values(), *held.values()] for user in users)
    assert not (out / "book/book-processed/drawn_behavior.json").exists()


def test_the_report_says_what_each_rule_leaves(build):
    out = build(person("ann", 0, 0), person("bob", 1, 0), person("cem", 1, 50),
                [rated("bob", "thing", 1, 1), rated("ann", "nameless", 3, -1)],
                person("dan", 0, 0, item="other"), person("eve", 0.1, 0, item="other"),
                untitled=("nameless",))  # fmt: skip
    rules, written = build.report.sheets
    assert [row[1:] for row in rules.rows] == [
        (12, 5, 8, None), (11, 5, 7, 1), (10, 5, 7, 0), (5, 5, 2, 5), (5, 5, 2, 0), (2, 2, 1, 1),
        (2, 2, 1, 0),
    ]  # fmt: skip
    assert rules.rows[4][0] == "of an item with 2 such within 30 days"
    assert written.rows == (("all", "easy", 1, 0), ("all", "medium", 0, 0), ("all", "hard", 0, 0))
    assert not list(out.glob("all/all-processed/*hard*"))
    said = "hard in all: no files, because no item has enough users"
    assert any(said in note for note in build.report.notes)
    told = json.loads((out / "groups.json").read_bytes())
    assert [one["items"] for one in told["rules"]] == [8, 7, 7, 2, 2, 1, 1]
    assert told["settings"]["min_difference"] == 0.6
    assert told["reviews"] == [{"file": "log.jsonl", "domain": None}]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("rating", 0), ("rating", 5.5), ("rating", 3.14159), ("rating", None), ("user_id", ""),
        ("timestamp", None),
    ],
)  # fmt: skip
def test_a_bad_row_is_refused_with_its_line_or_left_out_and_counted(build, column, value):
    bad = {**rated("cem", "thing", 3, 0), column: value}
    rows = [*person("ann", 0, 0), *person("bob", 1, 0), bad]
    with pytest.raises(DataError, match=rf"log\.jsonl, row 5, column '{column}'"):
        build(rows)
    assert groups(build(rows, bad_rows="left_out")) == {"thing": ["ann", "bob"]}
    assert any(note.startswith("1 rows without") for note in build.report.notes)


COMMAND = """
import sys
from pathlib import Path
from harness_perrecbench.grouping import build as groups_tool
from harness_perrecbench.grouping.reading import Settings
out, meta, *reviews = sys.argv[1:]
groups_tool.run(Settings(reviews=tuple(reviews), meta=(Path(meta),), out=Path(out), min_history=0,
    test_items=8, domain_items=4, behaviours=30))
"""


def test_the_bytes_depend_on_neither_the_process_nor_the_order_of_rows_and_files(tmp_path):
    rng = Random(1)

    def shuffled(rows):
        return sorted(rows, key=lambda _: rng.random())

    people = {
        domain: [row for item in range(8) for one in six(f"{domain} {item}") for row in one]
        for domain in ("book", "kitchen")
    }
    items = sorted({row["parent_asin"] for rows in people.values() for row in rows})
    written = []
    for number in range(2):
        folder = tmp_path / str(number)
        given = [
            f"{domain}={write_json_lines(folder / f'{domain}.jsonl', shuffled(rows))}"
            for domain, rows in people.items()
        ]
        titles = [{"parent_asin": item, "title": item} for item in shuffled(items)]
        meta, out = write_json_lines(folder / "meta.jsonl", titles), folder / "out"
        if number:
            run_here(COMMAND, out, meta, *given)
        else:
            run_python(COMMAND, out, meta, *given[::-1], PYTHONHASHSEED="1")
        written.append(
            {str(file.relative_to(out)): file.read_bytes() for file in out.rglob("*.json")}
        )
    assert len(written[0]) == 26, "nine files of all, eight of each domain, the account"
    assert written[0] == written[1]


ITEMS = {
    "tea": {"title": "Green tea leaves", "author": None},
    "cup": {"title": "Blue cup"},
    "book": {"title": "On tea", "author": {"name": "A. Tree"}},
}
NEW_YEAR, NEXT = 18_262 * DAY, 18_628 * DAY
"""2020-01-01 is day 18,262 since 1970; 2021-01-01 is 366 days later."""
HISTORIES = {
    "ann": [("cup", 5, NEW_YEAR), ("book", 4, NEW_YEAR + DAY), ("tea", 2, NEW_YEAR + 2 * DAY)],
    "bob": [("cup", 3, NEW_YEAR), ("tea", 4, NEXT)],
    "cem": [("book", 1, NEW_YEAR), ("cup", 3, NEXT)],
}
EASY = {"tea": [[("ann", 2, -1.6), ("bob", 1, 0.5)], [("cem", 1, 0.0), ("bob", 1, 0.5)]]}
HELD_OUT = {"cup": [[("cem", 1, 1.0), ("ann", 0, 1.3)]]}


@pytest.fixture
def data(publish, tmp_path):
    for level, held_out in {"easy": HELD_OUT, "medium": None}.items():
        groups = {"groups": EASY, "held_out": held_out}
        publish(HISTORIES, level=level, **groups, items=ITEMS, inside="all/all-processed")
    return tmp_path


def described(data, **options):
    return describe_tool.run(Options(data=data, **options))


def row(report, name):
    return next(one[1:] for one in report.sheets[0].rows if one[0] == name)


def test_statistics_and_histograms_are_of_the_first_group_of_each_item(data):
    report = described(data)
    # Ann saw "Blue cup" and "On tea" by "A. Tree", bob "Blue cup"; both "Green tea leaves".
    tea = (2, 2, 1, 3, 2 + 4 + 3 + 2 + 3, "2020-01-03", "2021-01-01")
    assert row(report, "easy, to test") == tea
    assert row(report, "all levels, to test") == tea, "each review once"
    assert row(report, "hard, to test") == (0, 0, 0, 0, 0, None, None)
    held = (2, 2, 1, 1, 4 + 2 + 2, "2020-01-01", "2021-01-01")
    assert row(report, "all levels, held out") == held
    assert row(report, "the paper, to test")[:5] == (1007, 986, 200, 61412, 111017)
    assert row(report, "the paper, held out")[:5] == (2438, 2140, 466, 157480, 289164)
    figures = described(data).figures
    shares = [
        {
            mark.label: {name: of for name, of in zip(mark.names, mark.values, strict=True) if of}
            for mark in figure.marks
        }
        for figure in figures
    ]
    assert figures[0].marks[0].names == ("1", "2", "3", "4", "5")
    lengths, dates = {"0-20": 100}, {"2020": 50, "2021": 50}
    assert shares == [
        {"to test": {"2": 50, "4": 50}, "held out": {"5": 50, "3": 50}},
        {"to test": {"-2": 50, "0.5": 50}, "held out": {"1": 100}},
        {"to test": lengths, "held out": lengths},
        {"to test": dates, "held out": dates},
    ]
    file = data / "all/all-processed/held_out-easy.json"
    file.write_text(file.read_text().replace('"cup"', '"pot"'))
    report = described(data)
    assert report.notes[0].startswith("2 reviews without rating and time")
    assert row(report, "easy, held out")[5:] == (None, None)


@pytest.mark.parametrize(("inside", "domain"), [("", "tea"), ("tea", "tea"), ("tea", "all")])
def test_a_domain_is_described_from_its_folder_or_the_one_around_it(data, inside, domain):
    before = described(data).sheets
    (data / "all").rename(data / "tea")
    (data / "tea/all-processed").rename(data / "tea/tea-processed")
    assert described(data / inside, domain=domain).sheets == before


class Letters:
    """Stands in for a tokenizer: a token is a character."""

    @classmethod
    def from_pretrained(cls, name):
        if name != "letters":
            raise OSError(f"no model {name}")
        return cls()

    def encode_batch(self, texts, *, add_special_tokens):
        assert not add_special_tokens
        return [SimpleNamespace(ids=list(text)) for text in texts]


def test_a_tokenizer_of_the_package_counts_and_is_named(data, monkeypatch):
    package = ModuleType("tokenizers")
    package.__spec__ = ModuleSpec("tokenizers", None)
    package.Tokenizer = Letters
    monkeypatch.setitem(sys.modules, "tokenizers", package)
    report = described(data, tokenizer="letters")
    assert report.sheets[0].notes[0].startswith("tokens: letters, ")
    # "Blue cup" 8, "On tea\\nA. Tree" 14, "Green tea leaves" 16.
    assert row(report, "easy, to test")[4] == 8 + 14 + 16 + 8 + 16
    with pytest.raises(DataError, match="the tokenizer cannot be loaded"):
        described(data, tokenizer="words")
    monkeypatch.setattr("harness_perrecbench.grouping.describe.find_spec", lambda _: None)
    with pytest.raises(UsageError, match="pip install tokenizers"):
        described(data, tokenizer="letters")


def apart(values, gap):
    return all(other - one > gap + 1e-9 for one, other in combinations(sorted(values), 2))


def tried(values, gap):
    """Every largest set of places that are apart, by trying all sets."""
    for many in range(len(values), 0, -1):
        every = combinations(range(len(values)), many)
        sets = [places for places in every if apart([values[place] for place in places], gap)]
        if sets:
            return sets
    return [()]


def test_sets_and_windows_are_those_that_trying_all_finds():
    assert largest([1.0, 1.6], gap=0.6) == 1, "0.6000000000000001 as floating numbers"
    assert largest([0.0, 0.600001], gap=0.6) == 2
    rng = Random(3)
    for _ in range(400):
        values = sorted(round(rng.random() * 4, 1) for _ in range(int(rng.random() * 9)))
        order = sorted(range(len(values)), key=lambda _: rng.random())
        sets = tried(values, 0.6)
        assert largest(values, gap=0.6) == len(sets[0])
        by_order = min(sorted(order.index(place) for place in places) for places in sets)
        assert first_largest(values, order, gap=0.6) == [order[place] for place in by_order]
    rng = Random(4)
    for _ in range(400):
        many = 1 + int(rng.random() * 9)
        item = sorted((int(rng.random() * 40), round(rng.random() * 4, 1)) for _ in range(many))
        idle = [int(rng.random() * 40) for _ in range(int(rng.random() * 4))]
        starts = sorted([time for time, _ in item] + idle)
        best, size = None, 1
        for start in starts:
            held = [place for place, (time, _) in enumerate(item) if start <= time <= start + 10]
            found = len(tried([item[place][1] for place in held], 0.6)[0])
            if found > size:
                best, size = (held[0], held[-1] + 1), found
        times, values = zip(*item, strict=True)
        assert best_window(starts, times, values, span=10, gap=0.6, least=2) == best

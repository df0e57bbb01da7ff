"""Which places of candidates are read from replies, and how their titles were found."""

import json

import pytest
from harness_behaviour.parsing import RankingReader, folded

from harness import Parsed, Unreadable

FILMS = (
    "Schindler's List (1993)",
    "Freedom for Us (À nous la liberté ) (1931)",
    "Matrix, The (1999)",
    "Heat (1995)",
    "Good, The Bad and The Ugly, The (1966)",
    "Mr. & Mrs. Smith (1941)",
    "Independence Day (ID4) (1996)",
    "2001: A Space Odyssey (1968)",
    "Friday the 13th Part 3: 3D (1982)",
    "Friday the 13th Part 5: 3D (1985)",
    "Star Wars: Episode V - The Empire Strikes Back (1980)",
    "8 1/2 (1963)",
    "[Rec] (2007)",
    *(f"Filler Number {place} (19{place})" for place in range(13, 50)),
)
TRACKS = ("Creep — Radiohead", "Creep — TLC", "Karma Police — Radiohead", "Yellow — Coldplay")
LIST, LIBERTY, MATRIX, HEAT, UGLY, SMITH, DAY = range(7)


def read(text, candidates=FILMS, similarity=0.85):
    return RankingReader(candidates=candidates, similarity=similarity)(text)


def places(text, **given):
    found = read(text, **given)
    assert isinstance(found, Parsed), found
    return found.value.places


PUBLISHED = '["Heat (1995)", "Matrix, The (1999)", "Schindler\'s List (1993)"]'
THREE = (HEAT, MATRIX, LIST)
DAMAGED = {
    "single quotes": "['Heat (1995)', 'Matrix, The (1999)', \"Schindler's List (1993)\"]",
    "an apostrophe in single quotes":
        "['Heat (1995)', 'Matrix, The (1999)', 'Schindler's List (1993)']",
    "curly quotes": "[“Heat (1995)”, “Matrix, The (1999)”, “Schindler’s List (1993)”]",
    "no quotes": "[Heat (1995), Matrix, The (1999), Schindler's List (1993)]",
    "a fence": f"```python\n{PUBLISHED}\n```",
    "text before and after": f"Here is my list:\n{PUBLISHED}\nI hope that it helps!",
    "no closing bracket": PUBLISHED[:-1],
    "no closing quote": PUBLISHED[:-2],
    "no commas": PUBLISHED.replace('", ', '" '),
    "no brackets": PUBLISHED[1:-1],
    "a comma at the end": PUBLISHED.replace("]", ",]"),
    "a title a line": PUBLISHED.replace('", ', '"\n').strip("[]"),
    "a numbered list": "1. Heat (1995)\n2. Matrix, The (1999)\n3. Schindler's List (1993)",
    "bullets with remarks":
        "Sure:\n- **Heat (1995)** - a heist\n- *The Matrix*: a classic\n- Schindler's List – war",
    "a list in a list": '[["Heat (1995)", "Matrix, The (1999)"], ["Schindler\'s List (1993)"]]',
    "objects with reasons in it": (
        '[{"movie": "Heat (1995)", "reason": "8 1/2 (1963)"}, {"movie": "Matrix, The (1999)", '
        '"reason": "like it"}, {"movie": "Schindler\'s List (1993)", "reason": "war"}]'
    ),
    "Python objects with reasons in it": (
        "[{'Movie': 'Heat (1995)', 'Reason': '8 1/2 (1963)'}, {'Movie': 'Matrix, The (1999)', "
        "'Reason': 'like it'}, {'Movie': 'Schindler's List (1993)', 'Reason': 'war'}]"
    ),
    "titles with ranks":
        '{"Matrix, The (1999)": 2, "Schindler\'s List (1993)": 3, "Heat (1995)": 1}',
    "titles with reasons":
        '{"Heat (1995)": "a", "The Matrix": "b", "Schindler\'s List (1993)": "c"}',
    "titles with true or false": (
        '{"Heat (1995)": true, "Matrix, The (1999)": true, "Schindler\'s List (1993)": true, '
        '"8 1/2 (1963)": false}'
    ),
    "a negated list before it": f'I would not watch ["8 1/2 (1963)", "Big"], but {PUBLISHED}',
    "negated titles in it":
        '{"recommended": ' + PUBLISHED + ', "not_recommended": ["8 1/2 (1963)"]}',
    "negated lines after it": (
        "Recommended:\n1. Heat (1995)\n2. Matrix, The (1999)\n3. Schindler's List (1993)\n"
        "**Not recommended:**\n1. 8 1/2 (1963)\n2. [Rec] (2007)"
    ),
    "a negation that is none": f"Movies that the user has not seen yet: {PUBLISHED}",
    "a shorter list before it": f'Not ["Heat (1995)"], but {PUBLISHED}',
    "as long a list before it":
        f'["8 1/2 (1963)", "[Rec] (2007)", "Heat (1995)"]\nNo, rather:\n{PUBLISHED}',
    "a shorter list after it": f'{PUBLISHED}\nAlso: ["8 1/2 (1963)", "[Rec] (2007)"]',
    "other case": PUBLISHED.upper().replace('"MATRIX, THE (1999)"', '"the matrix (1999)"'),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_list(damage):
    found = read(DAMAGED[damage])
    assert isinstance(found, Parsed), found
    assert found.value.places == THREE
    assert (found.value.unknown, found.value.repeated, found.value.surplus) == (0, 0, 0)


def test_how_a_title_is_found():
    found = read(PUBLISHED)
    assert (found.rung, found.value.places) == ("strict", THREE)
    assert found.value.matched == ("exact",) * 3
    for title, place, how in (
        ("Schindler's List (1993)", LIST, "exact"), ("Schindler’s List (1993)", LIST, "folded"),
        ("SCHINDLERS LIST", LIST, "folded"), ("À nous la liberté", LIBERTY, "folded"),
        ("Freedom for Us (1931)", LIBERTY, "folded"), ("The Matrix (1999)", MATRIX, "folded"),
        ("The Good, the Bad and the Ugly", UGLY, "folded"), ("Mr and Mrs Smith", SMITH, "folded"),
        ("Mr. & Mrs. Smyth (1941)", SMITH, "closest"), ("1. Heat (1995)", HEAT, "folded"),
        ("Independence Day (1996)", DAY, "folded"), ("8½ (1963)", 11, "closest"),
    ):  # fmt: skip
        found = read(json.dumps([title])).value
        assert (found.places, found.matched) == ((place,), (how,)), title


SERIES = (
    *("Hamlet (1990)", "Toy Story 2 (1999)", "Rocky II (1979)", "Henry V (1989)", "Alien (1979)"),
    *FILMS[-45:],
)


def test_another_year_or_part_of_a_series_is_no_match():
    for title, place in {
        "Hamlet (1996)": None, "Hamlett (1990)": 0, "Toy Story (1995)": None, "Toy Storry 2": 1,
        "Rocky III (1979)": None, "Rocky 2 (1979)": 2, "Alien: Resurrection (1997)": None,
    }.items():  # fmt: skip
        found = read(json.dumps([title]), candidates=SERIES).value
        assert found.places == (() if place is None else (place,)), title
        assert found.unknown == (place is None)
        for listed in (f"[{title}, Henry V]", f"1. {title}\n2. Henry V", f"{title}: good\nHenry V"):
            found = read(listed, candidates=SERIES)
            assert isinstance(found, Unreadable) or set(found.value.places) <= {place, 3}
    # A title that is nearer to two candidates alike is neither.
    found = read('["Friday the 13th Part 4: 3D (198)", "Heat (1995)"]').value
    assert (found.places, found.unknown) == ((HEAT,), 1)


def test_similarity_bounds_the_closest_match():
    title = '["Schindler\'s Lost (1993)"]'
    assert places(title, similarity=0.9) == (LIST,)
    assert places(title, similarity=0.99) == ()
    assert places('["Heat (1995)", "The Matrix"]', similarity=1.0) == (HEAT, MATRIX)


def test_a_track_may_be_named_with_its_artist_in_several_ways():
    said = ["Radiohead - Creep", "Karma Police", "Yellow by Coldplay", "Creep - TLC"]
    assert places(json.dumps(said), candidates=TRACKS) == (0, 2, 3, 1)
    # Two tracks have this title.
    assert read('["Creep"]', candidates=TRACKS).value.unknown == 1


TEN = FILMS[20:30]


def test_unknown_and_repeated_titles_are_dropped_until_ten_are_placed():
    volumes = [f"Something else entirely, volume {number}" for number in range(990)]
    beyond = [TEN[0], "Big (1988)", TEN[0], *TEN[1:], FILMS[3], "No such film", TEN[3]]
    for said, first, others in (
        (beyond, 20, (1, 1, 3)), (FILMS, 0, (0, 0, 40)), ([*volumes, *FILMS[:10]], 0, (990, 0, 0)),
    ):  # fmt: skip
        found = read(json.dumps(said)).value
        assert found.places == tuple(range(first, first + 10))
        assert (found.unknown, found.repeated, found.surplus) == others
    # A list of all candidates is no ranking beside another list.
    assert places(f"Of {list(FILMS)!r} these: {PUBLISHED}") == THREE
    assert places(f"{PUBLISHED}\nout of\n{json.dumps(FILMS)}") == THREE


UNREADABLE = {
    "negated": [
        f"I would NOT recommend these: {PUBLISHED}",
        f"I wouldn't recommend any of these:\n```json\n{PUBLISHED}\n```",
        f"All but the following are good. Avoid: {PUBLISHED}",
        "You should never watch [Heat (1995), The Matrix].",
        "Not recommended:\n1. Heat (1995)\n2. The Matrix",
        "## What to avoid\nHeat (1995)\nThe Matrix",
        'I would not recommend "Heat (1995)", "The Matrix"',
        '{"not_recommended": ["Heat (1995)", "The Matrix"]}',
    ],
    "empty": [""],
    "empty_list": ['{"Heat (1995)": 2.5, "The Matrix": 9}', "[]", "```\n[]\n```", "[" * 20_000],
    "no_list": [
        "I cannot recommend movies.",
        "I would watch Heat (1995) first.",
        "1. I am a language model.\n2. I watch nothing.",
        '"Heat (1995)"',
        # Hostile text is read in its length.
        '["' * 20_000,
        '["' + "x" * 200_000,
        "1. a\n" * 20_000,
        "1. a" + " - a" * 20_000,
        "'" * 99_999,
    ],
}


@pytest.mark.parametrize(
    ("text", "cause"),
    [(text, cause) for cause, texts in UNREADABLE.items() for text in texts],
    ids=lambda value: value[:40],
)
def test_without_a_list_of_what_is_recommended_a_reply_is_unreadable(text, cause):
    found = read(text)
    assert (type(found), found.cause) == (Unreadable, cause)


def test_folding():
    assert folded("Good, The Bad and The Ugly, The (1966)") == "good the bad and the ugly 1966"
    assert folded("  L'Été   & moi ") == "lete and moi"
    assert folded("!!!") == "!!!"
    assert folded("The The") == "the"

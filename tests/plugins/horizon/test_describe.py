"""The figures of appendix B, from a log whose numbers are known."""

import pytest
from builders.horizon import TAU, built, settings_of, write_log
from harness_horizon.curation import build, describe

from harness.base.errors import DataError

DAY = 86_400_000
PEOPLE = [f"p{number:02}" for number in range(10)]
REVIEWS = {
    "Books": [
        *((one, "b1", TAU - 400 * DAY) for one in PEOPLE),
        *((one, "b2", TAU - DAY) for one in PEOPLE[:5]),
    ],
    "Toys": [*((one, "t1", TAU) for one in PEOPLE[:8]), ("new", "t1", TAU + DAY)],
}
TITLES = {"Books": {"b1": "One", "b2": "Two"}, "Toys": {"t1": "Three"}}


def test_tables_stand_beside_those_of_the_paper_and_figures_hold_the_distributions(tmp_path):
    write_log(tmp_path, REVIEWS, TITLES)
    report = describe.run(describe.Settings(data=built(tmp_path), memory="2GB"))
    assert {sheet.title: sheet.rows for sheet in report.sheets} == {
        "Size, as in Table 7": (
            ("users", 11e-6, 54.51),
            ("mean length of a history", 24 / 11, 9.07),
            ("items", 3e-6, 34.52),
            ("interactions", 24e-6, 485.89),
        ),
        "Interactions of a user, as in appendix B": (
            ("interactions before 2020", 15 / 11, 1.5, 4.99),
            ("interactions from 2020 on", 9 / 11, 1.0, 4.09),
        ),
        "Interactions a year": (("2018", 10, 10), ("2019", 5, 5), ("2020", 9, 9)),
        "Long tails": (
            ("interactions of a user", 2, 3, 3, 3, 3),
            ("interactions of an item", 9, 10, 10, 10, 10),
        ),
        "Categories": (("Books", 2, 15, 0), ("Toys", 1, 0, 9)),
    }
    lengths, years, items = (figure.marks[0] for figure in report.figures)
    # Bins of one, of two and three, of four to seven, and of eight to fifteen: 3, 3 + 5 users.
    assert (lengths.x, lengths.y) == ((1.0, 2.5), (3.0, 4.0))
    assert (years.x, years.y) == ((2018.0, 2019.0, 2020.0), (10.0, 5.0, 9.0))
    assert (items.x, items.y) == ((5.5, 11.5), (1 / 4, 2 / 8))


def test_a_folder_that_is_not_complete(tmp_path):
    with pytest.raises(DataError, match="no complete build"):
        describe.run(describe.Settings(data=tmp_path))
    write_log(tmp_path, REVIEWS, TITLES)
    with pytest.raises(DataError):
        build.run(settings_of(tmp_path, least_items=100))
    with pytest.raises(DataError, match="no complete build") as error:
        describe.run(describe.Settings(data=tmp_path / "out"))
    assert error.value.found == "4 finished parts"

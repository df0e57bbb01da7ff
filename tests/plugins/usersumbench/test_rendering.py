"""Lines of activity as in the paper's appendix A.6, and ranges of time."""

import time
from datetime import UTC, datetime

import pytest
from builders.usersumbench import options
from harness_usersumbench.records import Activity
from harness_usersumbench.rendering import lines, month, time_range


def activity(*when, name="Heat (1995)", categories=("Crime", "Drama")):
    return Activity(int(datetime(*when, tzinfo=UTC).timestamp()), name, categories)


@pytest.mark.parametrize(
    ("when", "moment"),
    [
        ((2004, 5, 15, 16, 59), "Sat 05/15/2004 4PM"),
        ((2004, 6, 11, 18), "Fri 06/11/2004 6PM"),
        ((2000, 2, 29, 0, 30), "Tue 02/29/2000 12AM"),
        ((2000, 12, 31, 12), "Sun 12/31/2000 12PM"),
        ((2001, 1, 1, 11, 59), "Mon 01/01/2001 11AM"),
    ],
)
def test_a_line_names_the_object_its_categories_and_the_hour_in_utc(when, moment):
    [line] = lines([activity(*when)], options())
    assert line == f'watched "Heat (1995)" [Crime, Drama] around {moment}'


def test_a_line_is_the_same_wherever_the_computer_stands(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        [line] = lines([activity(2004, 5, 31, 23)], options())
        assert line.endswith("around Mon 05/31/2004 11PM")
        assert time_range([activity(2004, 5, 31, 23)]) == "05/31/2004"
        assert month(int(datetime(2004, 5, 31, 23, tzinfo=UTC).timestamp())) == (2004, 5)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_range_goes_from_the_first_day_to_the_last():
    first, last = activity(2004, 5, 15, 1), activity(2005, 1, 2)
    assert time_range([first, activity(2004, 7, 1), last]) == "05/15/2004 to 01/02/2005"
    assert time_range([first, activity(2004, 5, 15, 23)]) == "05/15/2004"

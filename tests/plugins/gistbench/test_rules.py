"""Rules for rows in SQL: what is blank as Python sees it, and errors with the first bad row."""

import json

import pytest
from builders.tables import table_of
from harness_gistbench.sources.rules import Rule, check, not_blank
from harness_gistbench.sources.times import with_times

from harness.base.errors import DataError
from harness.contracts.task import Column
from harness.data.database import Database

SPACES = [chr(code) for code in range(0x3001) if chr(code).isspace()]


@pytest.fixture
def read(tmp_path):
    """A database with the table `people` of rows with an id, stars and a time."""

    def made(*rows):
        file = tmp_path / "people.jsonl"
        file.write_text("".join(json.dumps({"id": "a", "stars": 1, **row}) + "\n" for row in rows))
        columns = {
            "id": Column(),
            "stars": Column(type="integer"),
            "time": Column(type="any", required=False),
        }
        table = table_of(file, columns=columns)
        return Database({"people": table}), "people", table

    return made


def test_a_cell_is_blank_as_it_is_to_python(read):
    blanks = ["", "  ", *SPACES, "\u3000 \t"]
    database, name, _ = read(
        {}, {"id": "~b"}, {"id": f"{SPACES[-1]}ü"}, *({"id": b} for b in blanks)
    )
    rule = f"SELECT row FROM {name} WHERE {not_blank('id').broken} ORDER BY row"
    assert [row for (row,) in database.sql(rule).fetchall()] == [*range(4, 4 + len(blanks))]


def test_the_first_row_that_breaks_any_rule_is_refused_by_the_first_of_its_rules(read):
    rules = Rule("stars > 5", "stars", "1 to 5 stars"), not_blank("id")
    check(*read({}, {"stars": 5}), *rules)
    with pytest.raises(DataError) as caught:
        check(*read({}, {"stars": 6, "id": ""}, {"id": ""}), *rules)
    assert caught.value.where.endswith("row 2, column 'stars'")
    assert (caught.value.found, caught.value.expected) == ("6 (integer)", "1 to 5 stars")


@pytest.mark.parametrize(
    ("times", "order"),
    [
        ([9, "10", " 9.5 "], [1, 3, 2]),
        ([2**60 + 2, f"{2**60 + 1}.0", "+5", "-0"], [4, 3, 2, 1]),
        (["2024-05-31", "2024-05-30T23:00-02:00", "2024-05-31T00:30Z"], [1, 3, 2]),
        (["2024-W22-5", "2024-05-30", "2024-05-31T01:00:00,5"], [2, 1, 3]),
        ([3, None, "", " ", 1], [5, 1, 2, 3, 4]),
    ],
)
def test_times_compare_as_numbers_or_as_moments(read, times, order):
    database, name, table = read(*({"time": time} for time in times))
    timed = with_times(database, name, table, "time")
    found = database.sql(f"SELECT row FROM ({timed}) ORDER BY moment NULLS LAST, row").fetchall()
    assert [row for (row,) in found] == order

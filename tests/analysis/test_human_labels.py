import pytest
from builders.texts import write_csv

from harness.analysis.human_labels import labels_by_rater, read_human_labels
from harness.base.errors import DataError

CALLED = {"item": "example", "label": "rating"}
MEANING = {"good": True, "bad": False}


def labels(folder, *rows, header="example,rater,rating"):
    return read_human_labels([write_csv(folder / "ratings.csv", header, *rows)], called=CALLED)


def rated(folder, *rows, but=()):
    return labels_by_rater(
        labels(folder, *rows).rows, lambda row: row.means(MEANING, "good or bad"), but=but
    )


def test_labels_are_read_from_columns_of_other_names(tmp_path):
    found = rated(tmp_path, "s1,ann,good", "s2,ann,BAD", "s1,bob,bad", "s3,bob,")
    assert found == {"ann": {"s1": True, "s2": False}, "bob": {"s1": False}}
    assert labels(tmp_path, "s1,ann,").blank == {"": 1}


@pytest.mark.parametrize(
    ("row", "column", "found", "expected"),
    [
        ("s1,ann,okay", "rating", "'okay'", "good or bad"),
        ("s1,,good", "rater", "nothing", "a name, other than 'judge'"),
        ("s1,judge,good", "rater", "'judge'", "a name, other than 'judge'"),
        (
            "s9,ann,good",
            "example",
            "'s9'",
            "one rating of each example by 'ann', who has another in row 1",
        ),
    ],
)
def test_an_error_names_the_column_of_the_file(tmp_path, row, column, found, expected):
    with pytest.raises(DataError) as raised:
        rated(tmp_path, "s9,ann,bad", row, but=("judge",))
    assert raised.value.where.endswith(f", row 2, column '{column}'")
    assert (raised.value.found, raised.value.expected) == (found, expected)
    if column == "rater":
        assert raised.value.hint == "the column 'rater' says who rated each row"

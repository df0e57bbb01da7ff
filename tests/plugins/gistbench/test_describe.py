"""What is told of a log, counted by hand."""

import pytest
from harness_gistbench.synthesis.describe import Options, run

ROWS = """user_id,object_id,object_text,interaction_type,interaction_time
ann,1,one two three,explicit_positive,1
ann,2,four five,implicit_negative,2
ann,2,four five,implicit_positive,3
ben,1,another text of the first,explicit_positive,4
ben,3,six,implicit_positive,
"""


def test_a_log_is_counted_by_hand(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text(ROWS)
    overview, signals, lengths = run(Options(data=str(file))).sheets
    assert dict(overview.rows) == {
        "users": 2,
        "engagements": 5,
        "objects": 3,
        "objects of more than one user": 1,
        "users with fewer than 100 engagements": 2,
        "users with fewer than 100 engagements, %": 100.0,
        "engagements without a time": 1,
        "left out: engagements without a rating": 0,
        "left out: engagements with objects without a text": 0,
        "left out: users without any other engagement": 0,
    }
    assert signals.rows == (
        ("explicit positive", 2, 40.0, 2, 1.0),
        ("implicit positive", 2, 40.0, 2, 1.0),
        ("implicit negative", 1, 20.0, 1, 0.5),
    )
    of_all = {row[0]: row[1:] for row in lengths.rows}
    assert lengths.columns[1:4] == ("of", "mean", "least")
    assert of_all["engagements a user"][:3] == (2, 2.5, 2.0)
    assert of_all["users an object"] == (3, pytest.approx(4 / 3), 1.0, 1.0, 1.0, 1.0, 1.5, 1.9, 2.0)
    assert of_all["characters a text"][1:3] == (pytest.approx((13 + 9 + 3) / 3), 3.0)
    assert (of_all["words a text"][1], of_all["words a text"][-1]) == (2.0, 3.0)


def test_a_layout_of_several_tables_is_described_under_its_task(tmp_path):
    (tmp_path / "behaviors.tsv").write_text(
        "1\tU1\t11/11/2019 9:05:58 AM\tN9\tN1-1 N2-0\n"
        "2\tU2\t11/12/2019 9:05:58 AM\t\tN1-0 N3-1\n"
        "3\tU3\t11/12/2019 9:05:58 AM\t\tN3-1\n"
    )
    news = "{}\tnews\tworld\t{}\tabstract\thttps://a\t[]\t[]\n"
    (tmp_path / "news.tsv").write_text(news.format("N1", "First") + news.format("N2", "Second"))
    overview, signals, _ = run(Options(data=str(tmp_path), task="gist_mind")).sheets
    told = dict(overview.rows)
    assert (told["users"], told["engagements"], told["objects"]) == (2, 3, 2)
    assert told["left out: engagements with objects without a text"] == 2
    assert told["left out: users without any other engagement"] == 1
    assert [row[:2] for row in signals.rows] == [("explicit positive", 1), ("implicit negative", 2)]


def test_own_columns_and_values_are_named_as_for_a_run(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text(ROWS.replace("user_id", "customer").replace("explicit_positive", "like"))
    own = {"columns": ("user_id=customer",), "values": ("interaction_type.like=explicit_positive",)}
    overview, *_ = run(Options(data=str(file), **own)).sheets
    assert dict(overview.rows)["users"] == 2

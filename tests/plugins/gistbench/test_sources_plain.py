"""Files in the plain schema: every format, the aliases, and what is refused with which words."""

import pytest
from harness_gistbench.histories import Engagement

from harness.base.errors import DataError

HEADER = "user_id,object_id,object_text,interaction_type,interaction_time\n"
READ = [
    Engagement("11", "Rye bread", "implicit_negative"),
    Engagement("10", "Night trains", "explicit_positive"),
]


@pytest.fixture
def refused(load_histories, tmp_path):
    """The error for a CSV file of these lines."""

    def read(text):
        file = tmp_path / "log.csv"
        file.write_text(text)
        with pytest.raises(DataError) as caught:
            load_histories("gist_synthetic", file)
        return caught.value

    return read


def test_the_other_names_of_columns_will_do(load_histories, tmp_path):
    file = tmp_path / "log.csv"
    file.write_text(
        "dataset,user_mock_id,object_id,engagement_type,object_text,timestamp\n"
        "synthetic,1,10,explicit_positive,Night trains,2024-05-30\n"
        "synthetic,1,11,implicit_negative,Rye bread,2024-05-31\n"
    )
    assert load_histories("gist_synthetic", file).history("1") == READ


def test_an_unknown_type_is_named_with_its_row(refused, tmp_path):
    error = refused(f"{HEADER}1,10,a,explicit_positive,1\n1,11,b,like,2\n1,12,c,share,3\n")
    assert error.where == f"{tmp_path / 'log.csv'}, row 2 (line 3), column 'interaction_type'"
    assert error.found == (
        "'like'\n            1 of the next 1 rows cannot be used either: "
        "'share' in 'interaction_type' (1)"
    )


@pytest.mark.parametrize(
    ("row", "column", "found"),
    [
        (" ,11,b,explicit_positive,2", "user_id", "' '"),
        ("1, ,b,explicit_positive,2", "object_id", "' '"),
        ("1,11,,explicit_positive,2", "object_text", "''"),
        ("1,11,  ,explicit_positive,2", "object_text", "'  '"),
    ],
)
def test_a_blank_id_or_text_is_named_with_its_row(refused, tmp_path, row, column, found):
    error = refused(f"{HEADER}1,10,a,explicit_positive,1\n{row}\n")
    assert error.where == f"{tmp_path / 'log.csv'}, row 2 (line 3), column '{column}'"
    assert error.found == found

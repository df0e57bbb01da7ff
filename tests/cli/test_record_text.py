"""JSON as a person reads it: on one line where it fits."""

import json

import pytest

from harness.reporting.run_lines import laid_out


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a text that is longer than the width", '"a text that is longer than the width"'),
        # As wide as the width itself fits, one more does not.
        ({"abcdef": 12345678}, '{"abcdef": 12345678}'),
        ({"abcdef": 123456789}, '{\n  "abcdef": 123456789\n}'),
        # The comma behind a member counts as well: the first is 23 wide with it.
        (
            {"a": [100, 200, 300], "b": "é"},
            '{\n  "a": [\n    100,\n    200,\n    300\n  ],\n  "b": "é"\n}',
        ),
        (
            {"a": [100, 200, 30], "b": ["x\ny"]},
            '{\n  "a": [100, 200, 30],\n  "b": ["x\\ny"]\n}',
        ),
    ],
)
def test_what_fits_stands_on_one_line(value, text):
    assert laid_out(value, width=20 if "200" not in str(value) else 22) == text


def test_no_line_of_short_members_is_wider_than_the_width_and_nothing_is_lost():
    value = {"deep": [{"n": [number] * 9, "name": "x" * number} for number in range(12)]}
    for width in (30, 60, 90):
        text = laid_out(value, width=width)
        assert json.loads(text) == value
        assert max(map(len, text.split("\n"))) <= width
    # Each of the twelve on a line, between the two brackets above and below.
    assert len(text.split("\n")) == 12 + 4

import pytest

from harness.reporting.text import causes, clean_text, count, duration, number, share


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("naïve 猫 [bold]", "naïve 猫 [bold]"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("abc\u202edef", "abc\\u202edef"),
        ("\ud800", "\\ud800"),
        ("two\nlines\tand\r\nmore", "two lines and more"),
        ("a\ufffe\uffff\ufdd0\U0010ffffb", "a\\ufffe\\uffff\\ufdd0\\U0010ffffb"),
        ("over\rwritten", "over\\x0dwritten"),
        ("👩\u200d🔬", "👩\u200d🔬"),
    ],
)
def test_what_could_steer_a_terminal_is_shown_as_an_escape(text, shown):
    assert clean_text(text) == shown


def test_causes_and_limits():
    assert clean_text("abcdef", limit=4) == "abc…"
    assert clean_text("abcd", limit=4) == "abcd"
    assert causes({"timeout": 1, "no_json": 3, "empty": 1}) == "5: no_json 3, empty 1, timeout 1"
    assert causes({"no_json": 12345, "none": 0}) == "12,345: no_json 12,345"
    assert causes({}) == "–"
    assert clean_text("a\r\nb\tc\x1bd\n", lines=True) == "a\nb\tc\\x1bd\n"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.73456, "0.735"),
        (0.0, "0.000"),
        (0.00012, "1.2e-04"),
        (-9.3e-18, "0.000"),
        (12345.678, "12,345.7"),
        (None, "–"),
    ],
)
def test_measured_values(value, shown):
    assert number(value) == shown


@pytest.mark.parametrize(
    ("of", "given", "shown"),
    [
        # Counts stay short.
        (count, (999,), "999"),
        (count, (1000,), "1.0k"),
        (count, (123_456,), "123k"),
        (count, (999_960,), "1.0M"),
        # Only nothing is 0, and only everything 100 percent.
        (share, (10, 10), "100%"),
        (share, (1, 100_000), "<1%"),
        (share, (99_999, 100_000), ">99%"),
        (share, (0, 0), "–"),
        # Time spans.
        (duration, (0,), "0:00"),
        (duration, (725,), "12:05"),
        (duration, (11_229,), "3:07:09"),
        (duration, (183_600,), "2d 03h"),
        (duration, (-1,), "0:00"),
        (duration, (None,), "–"),
    ],
)
def test_counts_shares_and_time_spans(of, given, shown):
    assert of(*given) == shown

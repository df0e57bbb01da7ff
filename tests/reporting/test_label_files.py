import pytest

from harness.reporting.label_files import csv_bytes


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("+1", "'+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "' =1"),
        ("a\x00b\x1b[2J", "a\\x00b\\x1b[2J"),
        ("1 = 1", "1 = 1"),
    ],
)
def test_no_cell_is_a_formula_or_steers_a_terminal(text, written):
    assert csv_bytes(["text"], [{"text": text}]) == f"text\n{written}\n".encode()


def test_line_ends_become_blanks_or_stay():
    rows = [{"text": "a\nb", "more": "left out"}]
    assert csv_bytes(["text"], rows) == b"text\na b\n"
    assert csv_bytes(["text"], rows, lines=True) == b'text\n"a\nb"\n'

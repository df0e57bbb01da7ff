import pytest
from builders.texts import lines_on

from harness.contracts.report import Report, Sheet
from harness.reporting.grid import format_cell, print_report


def printed(report, width=120):
    return lines_on(lambda console: print_report(report, console), width=width)


def only(**sheet):
    return Report(sheets=(Sheet(title="T", **sheet),))


@pytest.mark.parametrize(
    ("cell", "digits", "shown"),
    [
        (None, 1, "—"),
        (0.0004, 2, "<0.01"),
        (-0.0004, 2, ">-0.01"),
        (1234.5, 1, "1,234.5"),
        (-0.0, 1, "0.0"),
        (12345, 1, "12,345"),
        ("a\x1b[2J\nb", 1, "a\\x1b[2J b"),
        (-6.9e-18, 3, "0.000"),
        (2e-12, 2, "<0.01"),
    ],
)
def test_a_cell_is_shown_as_people_read_it(cell, digits, shown):
    assert format_cell(cell, digits) == shown


def test_words_of_models_cannot_steer_the_terminal_or_be_markup():
    report = Report(
        notes=("n\x07",),
        sheets=(Sheet(title="t\x1b", columns=("c\x9b",), rows=(("[bold]x[/]\u202e",),),
                      notes=("s\x00",)),),
    )  # fmt: skip
    assert printed(report) == [
        "n\\x07", "", "t\\x1b", "c\\x9b", "────────────────", "[bold]x[/]\\u202e", "  s\\x00",
    ]  # fmt: skip


def test_a_wide_table_is_cut_between_columns_and_names_its_rows_again():
    sheet = only(
        columns=("model", "task", "one", "two", "three", "four"),
        rows=(("org/model-a", "alpha", 1.0, 2.0, 3.0, 4.0), ("b", "beta", 5.0, 6.0, 7.0, 8.0)),
    )
    assert printed(sheet, width=30) == [
        "T",
        "model        task   one  two",
        "────────────────────────────",
        "org/model-a  alpha  1.0  2.0",
        "b            beta   5.0  6.0",
        "",
        "model        task   three",
        "─────────────────────────",
        "org/model-a  alpha    3.0",
        "b            beta     7.0",
        "",
        "model        task   four",
        "────────────────────────",
        "org/model-a  alpha   4.0",
        "b            beta    8.0",
    ]


def test_long_texts_are_wrapped_before_names_and_heads_stand_on_the_rule():
    nowhere = only(columns=("name", "n"), rows=(("abcdefghij", 1),))
    assert printed(nowhere, width=8)[3:] == ["abcde  1", "fghij"]
    sheet = only(columns=("name", "said", "n"), rows=(("a/b-c-d", "one two three four", 1234),))
    assert printed(sheet, width=26) == [
        "T",
        "name     said            n",
        "──────────────────────────",
        "a/b-c-d  one two     1,234",
        "         three four",
    ]
    sheet = only(columns=("name", "said"), rows=(("abcdefghijkl", "aa bb cc dd ee ff"),))
    assert printed(sheet, width=24)[3:] == ["abcdefghijkl  aa bb cc", "              dd ee ff"]
    sheet = only(columns=("model", "easy point", "avg."), rows=(("a", 1.0, 2.0),))
    assert printed(sheet, width=19)[1:3] == ["        easy", "model  point  avg."]


def test_what_cannot_be_shown_is_no_sheet():
    assert printed(only(columns=("a", "b"), rows=()))[-1] == "  no rows"
    with pytest.raises(ValueError, match="differ in number: 2 and 1"):
        Sheet(title="T", columns=("a", "b"), rows=((1,),))
    for cell in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="leave it out or give None"):
            Sheet(title="T", columns=("a",), rows=((cell,),))
    with pytest.raises(ValueError, match="the sheet 'T' has no columns"):
        Sheet(title="T", columns=(), rows=())

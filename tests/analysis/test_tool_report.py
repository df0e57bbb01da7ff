"""What a data tool kept and dropped, as table, lines and JSON."""

import msgspec

from harness.analysis.tool_report import Step, ToolReport, settings_without, write_json

REPORT = ToolReport(
    rules="users …",
    dropped="users",
    steps=(
        Step("in the file", {"users": 1900, "ratings": 50_000}),
        Step("with 20 ratings", {"users": 640, "ratings": 47_500}),
    ),
)


def test_the_table_counts_what_each_rule_left_and_removed_and_lines_are_aligned():
    sheet = REPORT.sheet("Rules", notes=("one",))
    assert sheet.columns == ("users …", "users", "ratings", "users removed")
    assert sheet.rows == (
        ("in the file", 1900, 50_000, None),
        ("with 20 ratings", 640, 47_500, 1260),
    )
    assert sheet.notes == ("one",)
    assert REPORT.lines() == [
        "users  ratings  users removed  users …",
        "1,900   50,000                 in the file",
        "  640   47,500          1,260  with 20 ratings",
    ]


def test_the_file_holds_the_counts_and_the_settings_that_name_no_file(tmp_path):
    class Settings(msgspec.Struct):
        log: str
        least: int = 2

    file = tmp_path / "new" / "report.json"
    settings = settings_without(Settings(log="/home/ada/log.csv"), "log")
    write_json(file, {"rules": REPORT.json(), "settings": settings}, option="--out")
    assert msgspec.json.decode(file.read_bytes()) == {
        "rules": [
            {"rule": "in the file", "users": 1900, "ratings": 50_000},
            {"rule": "with 20 ratings", "users": 640, "ratings": 47_500},
        ],
        "settings": {"least": 2},
    }

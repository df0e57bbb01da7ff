"""Pages of sheets and figures: what is escaped, hidden and kept."""

import re
from xml.etree import ElementTree

import pytest
from builders.report_pages import ReportPage
from builders.runs import make_manifest

from harness.base.redaction import keep_out
from harness.contracts.report import (
    Axis,
    Bars,
    Boxes,
    Figure,
    Grid,
    Line,
    Panels,
    Points,
    Report,
    Rule,
    Sheet,
    Spans,
)
from harness.reporting.html.markup import (
    Html,
    all_shown,
    breakable,
    element,
    page_html,
    read_secrets,
    section_html,
    shown,
)
from harness.reporting.html.provenance import command_of, provenance_html
from harness.reporting.html.report_html import figure_html, report_html, sheet_html
from harness.reporting.html.reported_run import ReportedRun
from harness.runs.run_folder import RunFolder

HOSTILE = "<script>alert(1)</script>\u202e\x1b"


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    read_secrets()
    yield
    monkeypatch.undo()
    read_secrets()


def page_of(*inside):
    return ReportPage(page_html("A page", [section_html("part", "Part", *inside)]))


def test_every_text_and_attribute_is_escaped_once():
    made = element("a", HOSTILE, Html("<b>kept</b>"), title='"><x', data_sort=None, hidden=True)
    assert made == (
        '<a title="&quot;&gt;&lt;x" hidden>&lt;script&gt;alert(1)&lt;/script&gt;\\u202e\\x1b'
        "<b>kept</b></a>"
    )
    assert element("p", made) == f"<p>{made}</p>"


def test_no_key_and_no_home_folder_is_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "a-secret-of-length")
    keep_out("registered-secret-value")
    read_secrets()
    text = f"{tmp_path}/ada/x {tmp_path}/adam a-secret-of-length registered-secret-value"
    assert shown(text) == f"~/x {tmp_path}/adam [redacted] [redacted]"


@pytest.mark.parametrize("texts", [
    [], [""], ["a", ""], ["plain", HOSTILE, "ü", "lone \ud800"], ["holds\n\t\n\t\nthe mark", "b"],
    ["ends in Bearer", "abcdefghijklmnop"],
])  # fmt: skip
def test_texts_are_shown_together_as_they_are_one_by_one(texts):
    assert all_shown(texts) == [shown(text) for text in texts]


def test_a_sheet_is_a_table_that_can_be_sorted_by_its_numbers():
    sheet = Sheet(title="Scores <b>", columns=("model", "score", "n"),
                  rows=((HOSTILE, 0.12345, 1200), ("b", None, 3)), notes=("a note",),
                  digits=2)  # fmt: skip
    page = page_of(sheet_html(sheet))
    (table,) = page.tables
    assert table.head == ["model", "score", "n"]
    assert table.rows == [["<script>alert(1)</script>\\u202e\\x1b", "0.12", "1,200"],
                          ["b", "—", "3"]]  # fmt: skip
    assert [about.get("data-sort") for name, about in page.elements if name == "td"] == [
        "0.12345", "1200", None, "3",
    ]  # fmt: skip
    assert (4, "Scores <b>") in page.headings
    assert (
        "no rows" in page_of(sheet_html(Sheet(title="none", columns=("a",), rows=()))).texts["part"]
    )


def test_a_name_may_break_behind_an_underscore_and_a_long_text_has_a_wide_column():
    assert breakable("a_<b>") == "a_<wbr>&lt;b&gt;"
    long = "because_" + 50 * "x"
    sheet = Sheet(title="s", columns=("task", "why", "how"), rows=(("a_b", long, "c_d"),))
    text = sheet_html(sheet)
    assert '<th scope="row">a_<wbr>b</th>' in text and "<td>c_<wbr>d</td>" in text
    assert f'<td class="long">{long}</td>' in text
    assert page_of(text).tables[0].rows == [["a_b", long, "c_d"]]


X, Y = Axis(label="x <i>"), Axis(label="y")
FIGURES = [
    Figure(title=HOSTILE, x=X, y=Y, note="<note>", stamp="NOT COMPARABLE <x>", marks=(
        Points(label="a", x=(1, 2), y=(3, 4), names=(HOSTILE, "n"), sizes=(1, 2)),
        Line(label="b", x=(1, 2), y=(2, 3)), Rule(label="r", at=2.5),
    )),
    Figure(title="bars", x=X, y=Y, marks=(Bars(label="a", names=("p", "q"), values=(1, 2)),)),
    Figure(title="boxes", x=X, y=Y, marks=(
        Boxes(label="a", names=("p", "q"), values=((1, 2, 9), ())),
    )),
    Figure(title="spans", x=X, y=Y, marks=(
        Spans(label="a", names=("p", "q"), low=(0, None), value=(1, None), high=(2, None)),
    )),
    Figure(title="grid", x=X, y=Y, marks=(
        Grid(label="g", across=("p", "q"), down=("r",), values=((0.5, None),)),
    )),
]  # fmt: skip


@pytest.mark.parametrize("figure", [*FIGURES, Panels(title="all", figures=tuple(FIGURES[1:3]))])
def test_a_figure_is_a_drawing_with_its_data_and_nothing_that_runs(figure):
    page = page_of(figure_html(figure))
    drawn = [about for name, about in page.elements if name == "svg"]
    assert [about["role"] for about in drawn] == ["img"]
    assert drawn[0]["aria-label"] == shown(figure.title)
    for name, about in page.elements:
        assert not {key for key in about if key == "style" or key.startswith("on")}, about
        assert name not in ("iframe", "foreignobject", "image")
    assert page.tables, "the data of the figure"
    text = figure_html(figure)
    (svg,) = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    ids = set(re.findall(r'\bid="([^"]*)"', svg))
    assert set(re.findall(r'(?:url\(|href=")#([^")]*)', svg)) <= ids
    ElementTree.fromstring(svg)
    assert text == figure_html(figure), "the same figure is the same page"


def test_the_data_of_a_figure_are_its_numbers_without_references():
    tables = page_of(figure_html(FIGURES[0])).tables
    assert tables[0].rows == [["a", shown(HOSTILE), "1", "3", "1"], ["a", "n", "2", "4", "2"]]
    assert tables[1].rows == [["b", "1", "2"], ["b", "2", "3"]]
    assert tables[2].rows == [["r", "y", "2.500"]]
    (boxes,) = page_of(figure_html(FIGURES[2])).tables
    assert boxes.rows == [["a", "p", "3", "1", "2", "9"], ["a", "q", "0", "—", "—", "—"]]
    contour = Line(label="F1 0.5", x=(0, 1), y=(1, 0), dashed=True)
    figure = Figure(title="f", x=X, y=Y, marks=(contour, *FIGURES[0].marks))
    (drawn,) = re.findall(r"<svg.*?</svg>", figure_html(figure), re.DOTALL)
    assert "F1 0.5" in drawn
    cells = [
        cell for table in page_of(figure_html(figure)).tables for row in table.rows for cell in row
    ]
    assert "b" in cells and "F1 0.5" not in cells
    alone = figure_html(Figure(title="f", x=X, y=Y, marks=(contour,)))
    assert "The data of" not in alone


def test_a_report_has_notes_figures_and_sheets():
    report = Report(sheets=(Sheet(title="s", columns=("a",), rows=(("b",),)),),
                    figures=(FIGURES[1],), notes=("NOT COMPARABLE: x", "a note"))  # fmt: skip
    page = page_of(report_html(report))
    stamps = [about for name, about in page.elements if about.get("class") == "stamp"]
    assert len(stamps) == 1
    assert page.texts["part"].index("a note") < page.texts["part"].index("bars")


@pytest.mark.parametrize(("settings", "words"), [
    ({"model": "openai:api_key=sk-1", "tasks": ["t"]},
     "--model 'openai:api_key=[redacted]' --tasks t"),
    ({"model": "m", "model_args": {"a": "1", "b": "x,y"}, "tasks": ["a", "b"]},
     """--model m --model_args '{"a": "1", "b": "x,y"}' --tasks a,b"""),
    ({"model": "m", "model_args": {"a": "1", "b": "2"}, "tasks": ["t"],
      "roles": {"judge": "lexical", "profiler": "baseline"}, "data": {"*": "sample", "t": "my dir"},
      "changes": {"window": 6, "t.mode": "on"}, "sampling": {"temperature": 0.5}, "limit": 3,
      "seed": 7, "num_repeats": 2, "structured": True, "tags": {"week": "47"}},
     "--model m --model_args a=1,b=2 --tasks t --judge lexical --role profiler=baseline "
     "--data sample --data 't=my dir' --set window=6 --set t.mode=on --gen_kwargs temperature=0.5 "
     "--limit 3 --seed 7 --num_repeats 2 --tag week=47 --structured"),
])  # fmt: skip
def test_the_command_of_a_run_has_its_settings_and_no_key(settings, words):
    assert command_of(make_manifest(settings=settings)) == f"harness run {words}"


def test_a_run_on_a_cluster_says_so(tmp_path):
    def page(**settings):
        manifest = make_manifest(settings=settings)
        run = ReportedRun(
            label="m", folder=RunFolder(tmp_path), manifest=manifest, tasks=(), summaries=()
        )
        return page_of(provenance_html([run])).texts["part"]

    local = {"ray_address": None, "workers": None}
    assert "executor" not in page() + page(executor="local", **local)
    given = {"ray_address": "auto", "workers": 8, "engines": None}
    assert "ray --ray_address auto --workers 8" in page(executor="ray", **given).replace(
        "<wbr>", ""
    )

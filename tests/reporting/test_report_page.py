import re
from base64 import b64decode
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from builders.report_pages import ReportPage
from builders.runs import make_manifest, make_metric

from harness.base.redaction import keep_out
from harness.comparison.document import ComparisonDocument, Decision, Difference
from harness.contracts.published import PublishedResult
from harness.contracts.report import Axis as FigureAxis
from harness.contracts.report import Bars, Figure, Panels, Sheet
from harness.reporting.html.answers import LONGEST, clipped
from harness.reporting.html.compared_runs import ComparedRuns, ending_of
from harness.reporting.html.limits import limits_of
from harness.reporting.html.page import MOST_ROWS, SVG, image_of, page_html, table_of
from harness.reporting.html.picture import Axis, result_rows
from harness.reporting.html.provenance import command_of
from harness.reporting.html.results import Result, Rule, Value
from harness.reporting.html.sections import values_table

HOSTILE = "<script>alert(1)</script>\u202e\x1b"
SHOWN = "<script>alert(1)</script>\\u202e\\x1b"


def page_of(**values):
    """A page of ranks, which has the fewest parts, with these values."""
    known = {"title": "A page", "words": {}, "facts": [], "unread": [], "everything": None,
             "boards": [], "problems": []}  # fmt: skip
    return page_html("rank.j2", **(known | values))


def test_every_text_is_escaped_and_what_nobody_sees_is_shown():
    sheet = Sheet(title=HOSTILE, columns=(HOSTILE, "n"), rows=((HOSTILE, 1200), ("b", None)),
                  notes=(HOSTILE,))  # fmt: skip
    text = page_of(title=f'"{HOSTILE}', everything=table_of(sheet), problems=[HOSTILE])
    assert "<script" not in text and "\u202e" not in text and "\x1b" not in text
    page = ReportPage(text)
    (table,) = page.tables
    assert (table.name, table.head, table.rows) == (
        SHOWN, [SHOWN, "n"], [[SHOWN, "1,200"], ["b", "—"]],
    )  # fmt: skip
    assert page.headings[0] == (1, f'"{SHOWN}')
    assert not {key for _, about in page.elements for key in about if key.startswith("on")}
    assert "style" not in {key for _, about in page.elements for key in about}


def test_no_key_and_no_home_folder_is_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    monkeypatch.setenv("SOME_TOKEN", "a-secret-of-length")
    keep_out("registered-secret-value")
    text = f"{tmp_path}/ada/x {tmp_path}/adam a-secret-of-length registered-secret-value"
    assert f"~/x {tmp_path}/adam [redacted] [redacted]" in page_of(problems=[text])
    figure = image_of(
        Figure(title=text, x=FigureAxis(label="x"), y=FigureAxis(label="y"), marks=())
    )
    assert "registered-secret" not in b64decode(figure.source.removeprefix(SVG)).decode()


def test_a_long_table_says_how_many_rows_it_leaves_out():
    rows = tuple((str(number), number) for number in range(MOST_ROWS + 7))
    found = table_of(Sheet(title="t", columns=("a", "b"), rows=rows, notes=("a note",)))
    assert (len(found.rows), found.numbers) == (MOST_ROWS, (False, True))
    assert found.notes == ("a note", "7 more rows are not shown")


def test_a_figure_is_an_image_that_the_page_holds_the_same_each_time():
    x, y = FigureAxis(label="x <i>"), FigureAxis(label="y")
    bars = Figure(title=HOSTILE, x=x, y=y, note="<note>", stamp="NOT COMPARABLE <x>",
                  marks=(Bars(label="a", names=(HOSTILE, "q"), values=(1, 2)),))  # fmt: skip
    for figure in (bars, Panels(title="all", figures=(Figure(title="f", x=x, y=y, marks=()),))):
        image = image_of(figure)
        drawn = ElementTree.fromstring(b64decode(image.source.removeprefix(SVG)))
        assert not [node for node in drawn.iter() if node.tag.endswith("script")]
        assert image == image_of(figure)
    assert (image_of(bars).title, image_of(bars).note) == (HOSTILE, "<note>")


@pytest.mark.parametrize(("values", "ends"), [
    ([0.3, 0.9], (0.0, 1.0)),       # a share
    ([0.02, 0.192], (0.0, 0.2)),    # small shares would lie on one another
    ([-0.02, 0.43], (-1.0, 1.0)),
    ([1.31, 1.57], (0.0, 2.0)),
    ([0.0, 0.0], (0.0, 1.0)),
    ([12.0, None], (0.0, 20.0)),
    ([], (0.0, 1.0)),
])  # fmt: skip
def test_an_axis_begins_at_0_and_ends_at_a_round_number(values, ends):
    axis = Axis.around(values)
    assert (axis.low, axis.high) == ends
    assert axis.place(axis.low) == 0 and axis.place(axis.high) == 100
    assert axis.ticks[1] == sum(ends) / 2


def result(name="t", *, members=(), rules=(), published=(), comparable=True, higher=True, **values):
    return Result(
        name=name, metric="ptc", words="pairs in order; ties count 0", higher_is_better=higher,
        tasks=frozenset(members or (name,)), rules=rules, published=published,
        comparable=comparable,
        values={label: one if isinstance(one, Value) else Value(value=one, of=40)
                for label, one in values.items()},
    )  # fmt: skip


def test_a_row_names_its_metric_in_words_with_an_arrow_and_what_is_missing():
    lost = Value(value=0.4, interval=(0.3, 0.5), of=40, causes={"ask/no_json": 3, "ask/empty": 1},
                 missing=0.1, other=0.36)  # fmt: skip
    parts = Value(value=0.5, of=40, missing=0.05, other=0.45, counts=True)
    none = Value(why="1 of 2 stages done, killed")
    (row,) = result_rows([result(a=lost, b=parts, c=none)], ["c", "a", "b", "d"])
    assert (row.name, row.metric, row.words) == ("t", "ptc ↑", "pairs in order")
    assert [(one.label, one.colour, one.text, one.aside) for one in row.marks] == [
        ("c", 0, "1 of 2 stages done, killed", ""), ("a", 1, "0.400", "4 missing"),
        ("b", 2, "0.500", "5% missing"),
    ]  # fmt: skip
    assert [one.title for one in row.marks[1:]] == [
        "4 of 40: ask/no_json 3, ask/empty 1; counted as worst: 0.360", "without them: 0.450",
    ]  # fmt: skip
    unscored = replace(result(a=Value(why="not scored")), metric="")
    assert values_table([unscored]).rows[0][:3] == ["t", "", "a"]


def test_labels_of_references_that_lie_close_stand_on_lines_of_their_own():
    rules = (Rule("ptc_mean", 0.52, "mean"), Rule("ptc_bm25", 0.5, "bm25"), Rule("x", 0.1, "x"))
    paper = PublishedResult(task="t", metric="ptc", model="A model of a very long name indeed",
                            value=0.9, source="Table 1", comparable_if="asked once")  # fmt: skip
    (row,) = result_rows([result(a=0.4, rules=rules, published=(paper,))], ["a"])
    (stamped,) = result_rows([result(a=0.4, published=(paper,), comparable=False)], ["a"])
    assert stamped.references == []
    found = [(one.label, one.line, one.published) for one in row.references]
    # The two best rules alone; each label is cut, as a phone has no room for more.
    assert found == [("bm25", 0, False), ("mean", 1, False), ("paper: A model of a ver…", 2, True)]
    assert row.references[2].title.endswith("Table 1: 0.900, comparable if asked once")


@pytest.mark.parametrize(("interval", "higher", "said"), [
    ((0.6, 0.8), True, ("wins", "above popular", "which has .5")),
    ((0.6, 0.8), False, ("worse", "above popular", "which has .5")),
    ((0.4, 0.8), True, ("undecided", "level with popular", "which has .5")),
])  # fmt: skip
def test_a_run_alone_is_beside_the_best_rule(interval, higher, said):
    one = Value(value=0.7, interval=interval)
    (row,) = result_rows(
        [result(a=one, rules=(Rule("popular", 0.5, "popular"),), higher=higher)], ["a"]
    )
    assert row.ending[:2] == said[:2] and row.ending.how.rstrip("0") == said[2]
    (two,) = result_rows([result(a=one, b=0.2, rules=(Rule("popular", 0.5, "popular"),))], ["a"])
    assert two.ending is None


def difference(first, value, interval, p):
    return Difference(metric="ptc", first=first, second="a", value=value, n=40, users=40,
                      interval=interval, confidence=0.95, p=p, p_holm=p)  # fmt: skip


@pytest.mark.parametrize(("differences", "said"), [
    ([difference("b", -0.2, (-0.3, -0.1), 0.0004), difference("c", -0.4, (-0.5, -0.3), 0.002)],
     ("wins", "A wins", "p .002")),
    ([difference("b", -0.2, (-0.3, -0.1), 0.012), difference("c", -0.1, (-0.3, 0.1), 0.4)],
     ("worse", "B worse", "p .012")),
    # Half of the width, 0.1, is 1.96 standard errors, of which 2.80 can be shown.
    ([difference("b", 0.0, (-0.1, 0.1), 1.0)], ("undecided", "undecided", "can show .14")),
    ([difference("b", 0.0, (0.0, 1e-16), 1.0)], ("undecided", "undecided", "no difference at all")),
])  # fmt: skip
def test_a_row_ends_with_what_the_comparison_decides(differences, said):
    decision = Decision(
        name="t", tasks=("t",), metric="ptc", higher_is_better=True, first=True, n=40, asked=40,
        results=dict.fromkeys("abc", make_metric(0.5, n=40)), differences=tuple(differences),
    )  # fmt: skip
    assert ending_of(decision, {"a": "A", "b": "B", "c": "C"}) == said


def test_a_rule_that_is_better_and_missing_units_that_decide_are_limits():
    rules = (Rule("ptc_popular", 0.6, "popular"),)
    one, two = Value(value=0.5, of=9, missing=0.4, other=0.2), Value(value=0.4, of=9, other=0.4)
    results = [result("x", a=one, b=two, rules=rules), result("y", a=0.9, b=0.8, rules=rules)]
    nothing = ComparedRuns(ComparisonDocument(comparisons=()))
    assert [(limit.badge, *limit.because) for limit in limits_of([], results, nothing)] == [
        ("popular beats every run on x",
         "On x the rule popular has a better value than every run."),
        ("what is missing decides 1 task",
         "x: a leads; b does where what is missing counts as worst."),
    ]  # fmt: skip


def test_the_tasks_of_a_group_open_below_it_and_a_second_metric_has_no_name():
    results = [result("all", members=("x", "y"), a=0.5), result("x", a=0.4), result("x", a=0.3),
               result("y", a=0.6), result("z", a=0.1)]  # fmt: skip
    rows = result_rows(results, ["a"])
    assert [row.name for row in rows] == ["all (mean of 2)", "z"]
    assert [row.name for row in rows[0].members] == ["x", "", "y"]


def test_the_middle_of_a_long_text_is_left_out():
    assert clipped("a" * LONGEST) == "a" * LONGEST
    text = clipped("a" * LONGEST + "b" * 1000)
    assert re.fullmatch(r"a{1000}\n… 1,000 characters not shown …\nb{1000}", text)


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

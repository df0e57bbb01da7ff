"""What is said of data, runs and settings that cannot be used: where, found, expected, to do."""

import re
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest
from builders.gistbench import make_histories
from harness_gistbench.analyses import coverage, judge_validation, scores, survey, window_size
from harness_gistbench.analyses.compared_runs import TableOptions
from harness_gistbench.categories import categories
from harness_gistbench.oracle import read
from harness_gistbench.records import Options
from harness_gistbench.stages.predict import windows
from harness_gistbench.synthesis import describe, synthesize
from harness_gistbench.synthesis.clusters import by_k_means
from harness_gistbench.synthesis.settings import Settings
from harness_gistbench.synthesis.writing import Filter, Row

from harness.base.errors import DataError, UsageError

HEAD = "category_id,category_name\n"
UNUSABLE = "the taxonomy cannot be used"
TWICE = "two categories of the taxonomy share a category_{}".format
ONCE = "expected: each id and each name once"
OPTION = "the option `taxonomy`"

TAXONOMIES = {
    "id,name\n1,Bread\n": (
        "DIR/few.csv:1", "id,name", UNUSABLE, "expected: the header category_id,category_name"),
    HEAD: ("DIR/few.csv:1", "no category", UNUSABLE, "expected: at least one"),
    f"{HEAD}1,Rye\nx,Tea": ("DIR/few.csv:3", "x", UNUSABLE,
                           "expected: a category_id that is a whole number from 1 on"),
    f"{HEAD}1,\n": ("DIR/few.csv:2", "1,", UNUSABLE, "expected: an id and a name"),
    f"{HEAD}1,Rye,x\n": ("DIR/few.csv:2", "1,Rye,x", UNUSABLE, "expected: an id and a name"),
    f'{HEAD}1,"Rye': ("DIR/few.csv:2", "unexpected end of data", UNUSABLE, "expected: a CSV file"),
    f"{HEAD}1,Caf\xe9": (
        "DIR/few.csv", "'utf-8' codec can't decode byte 0xe9 in position 31: unexpected end of "
        "data", "the taxonomy is no UTF-8 text"),
    f"{HEAD}1,Bread\n1,Tea\n": ("DIR/few.csv", "1", TWICE("id"), ONCE),
    f"{HEAD}1,Bread\n2,bread\n": ("DIR/few.csv", "bread", TWICE("name"), ONCE),
    None: (
        "DIR/few.csv", "No such file or directory", "the taxonomy cannot be read",
        "expected: a CSV file with the columns category_id,category_name",
        "to do: the option `taxonomy` names it, as seen from the working folder; "
        "a task for other people lists the names themselves"),
    (): (OPTION, "no category", UNUSABLE, "expected: a list of names"),
    ("Tea", " "): (OPTION, "a name that is blank", UNUSABLE, "expected: a list of names"),
    ("Tea", "tea "): (OPTION, "tea", TWICE("name"), ONCE),
}  # fmt: skip


@pytest.mark.parametrize("given", TAXONOMIES)
def test_taxonomies(raised, tmp_path, given):
    file = tmp_path / "few.csv"
    if isinstance(given, str):
        file.write_text(given, encoding="latin-1")
    where, found, *words = TAXONOMIES[given]
    call = partial(categories, given if isinstance(given, tuple) else str(file))
    assert raised(DataError, call, where=where, found=found) == "\n".join(words)


FORMAT = 'expected: {"oracle": {"user": [category ids]}}'
NO_JSON = "the oracle is no JSON", FORMAT
NO_ORACLE = "the file holds no oracle", FORMAT
IDS = (
    "expected: a list of different ids of the taxonomy's 2 categories, whole numbers from 1 to 2",
    "to do: the option `taxonomy` of the runs names the file with the ids",
)
NO_ID = "no id of a category", *IDS

ORACLES = {
    "{": (None, re.compile("Expecting property name.*"), *NO_JSON),
    "[" * 100_000: (None, re.compile("maximum recursion depth exceeded.*"), *NO_JSON),
    '{"made": NaN, "oracle": {}}': (None, "NaN is no JSON number", *NO_JSON),
    '{"oracle": {"1": [2], "1": [1]}}': (None, "the key '1' stands twice in one object", *NO_JSON),
    '{"dataset": "toy"}': (None, "['dataset']", *NO_ORACLE),
    '{"oracle": [1]}': (None, "['oracle']", *NO_ORACLE),
    "[1]": (None, "list", *NO_ORACLE),
    '{"oracle": {"7": 1}}': ("oracle of user '7'", "1", "no list of categories", *IDS),
    '{"oracle": {"1": [2], "7": [1, 3]}}': ("oracle of user '7'", "3", *NO_ID),
    '{"oracle": {"7": [true]}}': ("oracle of user '7'", "true", *NO_ID),
    '{"oracle": {"7": [2, 1, 2]}}': ("oracle of user '7'", "2", "a category is named twice", *IDS),
}  # fmt: skip


@pytest.mark.parametrize("text", ORACLES, ids=lambda text: text[:40])
def test_oracles(raised, text):
    where, found, *words = ORACLES[text]
    call = partial(read, text.encode(), Options(taxonomy=("Tea", "Bread")))
    assert raised(DataError, call, where=where, found=found) == "\n".join(words)


LOGS = {
    "engagements.csv": (
        "gist_synthetic", "user_id,object_id,object_text,interaction_type,interaction_time\n"
        "u,1,a,implicit_negative,1\n"),
    "Digital_Music.csv": ("gist_amazon_music", "user_id,parent_asin,rating,timestamp\nu,a,5.0,1\n"),
    "small_matrix.csv": ("gist_kuairec", "user_id,video_id,timestamp,watch_ratio\nu,1,,0.5\n"),
    "behaviors.tsv": ("gist_mind", "1\tu\t11/12/2019 2:14:46 PM\t\tN7-1\n"),
}  # fmt: skip
"""The task of a log and its first row, which other rows follow, by the name of its file."""
BESIDE = {
    "meta_Digital_Music.jsonl":
        '{"parent_asin": "a", "title": "t", "store": null, "description": []}\n',
    "kuairec_caption_category.csv":
        "video_id,manual_cover_text,caption,topic_tag,first_level_category_name,"
        "second_level_category_name,third_level_category_name\n1,a,b,c,d,e,f\n",
    "news.tsv": "N1\tnews\tworld\tFirst\tabstract\thttps://a\t[]\t[]\n",
}  # fmt: skip
ID = "an id that is not blank"
TIMED = "u,2,b,explicit_positive,{}\n".format
TIME = "engagements.csv, row {}, column 'interaction_time'".format
STARS = "Digital_Music.csv, row 2, column 'rating'", "1 to 5 stars, or 0 for no rating"
SHOWN = (
    "behaviors.tsv, row 2, column 'impressions'",
    "articles such as N1-1 (opened) and N2-0 (not), with spaces between",
)

SPACES = "".join(one for one in map(chr, range(0x3001)) if one.isspace())
CELLS = [
    (" ,2,b,explicit_positive,2", "' '", "engagements.csv, row 2, column 'user_id'", ID),
    ("u, ,b,explicit_positive,2", "' '", "engagements.csv, row 2, column 'object_id'", ID),
    ("u,2,  ,explicit_positive,2", "'  '", "engagements.csv, row 2, column 'object_text'",
     "a text that is not blank"),
    (f'u,2,"{SPACES}",implicit_positive,2', re.compile(r"'\\t.*"),
     "engagements.csv, row 2, column 'object_text'", "a text that is not blank"),
    (TIMED("noon"), "'noon'", TIME(2), "a number, or a date such as 2024-05-31"),
    (TIMED(2**63), "'9223372036854775808'", TIME(2), "a number below 2^63"),
    (TIMED("") + TIMED("2024-05-31"), "'2024-05-31'", TIME(3),
     "a number in every row, as in row 1: '1'"),
    (TIMED(2**53 + 1) + TIMED(0.5), "'0.5'", TIME(3), "a whole number, as others are above 2^53 "
     "and would be rounded, as in row 2: '9007199254740993'"),
    (TIMED(0.5) + TIMED(2**53 + 1), "'9007199254740993'", TIME(3), "a number up to 2^53, as "
     "others have fractions and it would be rounded, as in row 2: '0.5'"),
    (TIMED(f"{2**60}.5"), "'1152921504606846976.5'", TIME(2), "a whole number, or a number up to "
     "2^53: a larger one with a fraction is rounded"),
    ("u,a,5.5,1", "5.5 (number)", *STARS),
    ("u,a,-1.0,1", "-1.0 (number)", *STARS),
    (" ,a,5.0,1", "' '", "Digital_Music.csv, row 2, column 'user_id'", ID),
    ("u, ,5.0,1", "' '", "Digital_Music.csv, row 2, column 'parent_asin'", ID),
    ("u,1,,-0.5", "-0.5 (number)", "small_matrix.csv, row 2, column 'watch_ratio'",
     "a share that was watched, 0 or more"),
    ("2\tu\t11/12/2019 2:14:46 PM\t\tN1-1 N2", "'N2'", *SHOWN),
    ("2\tu\t11/12/2019 2:14:46 PM\t\tN1-2", "'N1-2'", *SHOWN),
    ("2\tu\t2019-11-12 14:14:46\t\tN1-1", "'2019-11-12 14:14:46'",
     "behaviors.tsv, row 2, column 'time'", "a time such as 11/12/2019 2:14:46 PM"),
    ("2\t \t11/12/2019 2:14:46 PM\t\tN1-1", "' '",
     "behaviors.tsv, row 2, column 'user_id'", ID),
]  # fmt: skip


@pytest.fixture
def load_log(load_histories, tmp_path):
    """Loads the log of this name, its first row with others behind it."""

    def load(name, rows, **options):
        task, text = LOGS[name]
        for each, content in {**BESIDE, name: text + rows}.items():
            (tmp_path / each).write_text(content)
        return load_histories(task, tmp_path, **options)

    return load


@pytest.mark.parametrize("case", CELLS, ids=lambda case: case[2])
def test_cells_of_logs(raised, load_log, monkeypatch, case):
    monkeypatch.setattr("harness.data.read.BATCH_ROWS", 1)
    rows, found, where, expected = case
    call = partial(load_log, where.partition(",")[0], rows)
    said = raised(DataError, call, where=f"DIR/{where}", found=found)
    assert said == f"a value that cannot be used\nexpected: {expected}"


WHOLE = {
    "a type that is none": (
        "u,2,b,like,2\nu,3,c,share,3\n", {}, ", row 2, column 'interaction_type'",
        "'like'", "not one of the values that the task allows",
        "expected: one of: explicit_positive, implicit_positive, implicit_negative, "
        "explicit_negative"),
    "few engagements": (
        "u,2,b,implicit_negative,\nv,2,b,explicit_positive,\n", {"min_engagements": 3}, "",
        "2 users; the most engagements of one are 2",
        "no user has 3 engagements, the fewest that task 'gist_synthetic' takes",
        "to do: take users with fewer: --set min_engagements=2"),
    "nothing positive": (
        "v,2,b,explicit_negative,\n", {}, "", "2 engagements, and none of them positive",
        "no interest can be verified with the data of task 'gist_synthetic'",
        "expected: engagements of the type explicit_positive or implicit_positive",
        "to do: `harness data describe` shows the types of engagement that the data has"),
}  # fmt: skip


@pytest.mark.parametrize("case", WHOLE)
def test_whole_logs(raised, load_log, case):
    rows, options, where, found, *words = WHOLE[case]
    call = partial(load_log, "engagements.csv", rows, **options)
    said = raised(DataError, call, where=f"DIR/engagements.csv{where}", found=found)
    assert said == "\n".join(words)


@pytest.mark.parametrize("other", ["a ", "#a", "[a]"])
def test_objects_that_are_cited_alike(raised, other):
    data = make_histories({"ada": [(one, "x", "explicit_positive") for one in ("a", other)]})
    assert list(windows({}, data, Options()))
    alike = windows({}, data, Options(object_ids=True))
    assert raised(DataError, list, alike, found=f"'a' and {other!r}") == (
        "two objects of user 'ada' are cited alike\n"
        "expected: ids that differ in more than spaces, brackets, quotes and #\n"
        "to do: rename one of them, or leave out the option object_ids"
    )


HEADER = "user_id,object_id,object_text,interaction_type,interaction_time,topic\n"
PAIRS = HEADER + "".join(
    f"{user},{topic},x,explicit_positive,1,{topic}\n"
    for user, topics in {1: "ab", 2: "ab", 3: "ac", 4: "ac", 5: "bc", 6: "bc"}.items()
    for topic in topics
)
FILES = {
    "log.csv": PAIRS,
    "two.csv": PAIRS.replace("2,a,x,explicit_positive,1,a", "2,a,x,explicit_positive,1,b"),
    "there/engagements.jsonl.gz": "",
    "there/synthesis.json": "",
    "mind/news.tsv": BESIDE["news.tsv"],
    "mind/behaviors.tsv": LOGS["behaviors.tsv"][1],
    "labels.csv": "task,item,rater,label\nevidence,i1,,\n",
    "overlap.csv": "task,item,rater,label\noverlap,i1,A,yes\n",
    "stated.csv": "user,interest\nu,x\n",
    "map.csv": "interest,category\ngo,Quidditch\n",
    "twice.csv": "interest,category\ngo,Anime\nGo,31\n",
    "elo.csv": "model,Elo\ngpt,1300\n",
}
GIVEN = (
    "own:tidy, given {'user_id': '1', 'object_id': '2', 'object_text': 'tea', "
    "'interaction_type': 'implicit_positive', 'interaction_time': '3'}"
)
GIVES = "the function that --filter names gives what cannot be written"
OWN = (
    "expected: the row's own fields: user_id, object_id, object_text, interaction_type, "
    "interaction_time"
)
NOT_ONE = (
    "this is not one task of GISTBench",
    "expected: one such as gist_synthetic; `harness tasks gist` lists them",
)
TAKEN = (
    "the synthetic users cannot be written there",
    "expected: a folder without data, or one that does not exist yet",
)
WRONG, ODD = "a value that cannot be used", "not one of the values that the task allows"


def described(**options):
    return lambda kept: describe.run(describe.Options(**options))


def filtered(function):
    row = Row(user=1, object=2, text="tea", signal="implicit_positive", time=3)
    chosen = Filter(function=function, name="own:tidy")
    return lambda kept: list(chosen.through_all([[row], [row]]))


def made(out="out", log="log.csv", **options):
    usual = {"log": log, "out": Path(out), "clusters_column": "topic"}
    return lambda kept: synthesize.run(Settings(**{**usual, **options}))


def clustered(*texts, **options):
    return lambda kept: by_k_means(texts, seed=0, **options)


def analysed(analysis, options, *runs):
    return lambda kept: analysis([kept(name, {"u": ()}, **more) for name, more in runs], options)


def labelled(*files):
    return analysed(judge_validation.validate, judge_validation.ValidationOptions(labels=files))


def surveyed(mapping):
    return analysed(survey.survey, survey.SurveyOptions(stated="stated.csv", mapping=mapping), ONE)


ONE = ("first", {})
LONGER = (
    "to do: a longer window (--days), fewer clusters in all (--clusters) or together "
    "(--clusters_together), or a larger log",
)
DATA = {
    "nothing to describe": (
        described(data="mind", task="gist_mind"), None,
        "0 without a rating, 1 with objects without a text", "no engagement is left to describe"),
    "few people": (
        made(clusters_together=2, least_people=3), "log.csv",
        "3 clusters; 6 of 6 people with a positive engagement in 2 or more of them; at most 2 "
        "people are in the same 2 clusters",
        "no 3 people are in the same 2 clusters, so that no cohort is formed",
        "expected: at least 3 people with positive engagements in the same 2 clusters", *LONGER),
    "many in a cluster": (
        made(clusters_together=1, least_people=5), "log.csv",
        "3 clusters; 6 of 6 people with a positive engagement in 1 or more of them; at most 4 "
        "people are in the same cluster",
        "no 5 people are in the same cluster, so that no cohort is formed",
        "expected: at least 5 people with positive engagements in the same cluster", *LONGER),
    "nobody": (
        made(clusters_together=3, least_people=2), "log.csv",
        "3 clusters; 0 of 6 people with a positive engagement in 3 or more of them; no two people "
        "are in the same 3 clusters",
        "no 2 people are in the same 3 clusters, so that no cohort is formed",
        "expected: at least 2 people with positive engagements in the same 3 clusters", *LONGER),
    "no column": (
        made(clusters_column="subject"), None, "a column that is absent or empty",
        "the log names no cluster in the column 'subject'",
        "expected: the name of a cluster for each object"),
    "two clusters": (
        made(log="two.csv"), "two.csv, row 3, column 'topic'", "'b'", WRONG,
        "expected: the cluster of object a in every row, which is 'a'"),
    "few texts": (
        clustered("a", "b", "a", many=3), None, "2 distinct texts",
        "there are too few texts for 3 clusters", "expected: at least 3",
        "to do: take fewer with --clusters"),
    "labels of overlap": (
        labelled("overlap.csv"), "overlap.csv, row 1, column 'task'", "'overlap'", ODD,
        "expected: one of: evidence, retrieval"),
    "no category": (
        surveyed("map.csv"), "map.csv, row 1, column 'category'", "'Quidditch'", WRONG,
        "expected: the id or name of a category"),
    "two categories": (
        surveyed("twice.csv"), "twice.csv, row 2, column 'interest'", "'Go'", WRONG,
        "expected: one category an interest"),
}  # fmt: skip
USE = {
    "a task": (described(task="interests"), "--task", "interests", *NOT_ONE),
    "a group": (described(task="gist"), "--task", "gist", *NOT_ONE),
    "data": (made("there"), "there", "engagements.jsonl.gz, synthesis.json", *TAKEN),
    "a file": (made("elo.csv"), "elo.csv", "elo.csv", *TAKEN),
    "no embedding": (
        clustered("a", "bb", many=2, embed=lambda texts: [[1.0]]), None,
        "an array of the shape (1, 1)", "the function that --embedding names gives no embedding",
        "expected: a row of finite numbers for each of 2 texts"),
    "a text": (filtered(lambda row: ""), GIVEN, "a value with the type <class 'str'>", GIVES, OWN),
    "a part": (
        filtered(lambda row: {"object_text": "x"}), GIVEN, "a value with object_text", GIVES, OWN),
    "a blank": (
        filtered(lambda row: {**row, "object_text": " "}), GIVEN, "the object_text ' '", GIVES,
        "expected: a text, or None in place of the row"),
    "a type": (
        filtered(lambda row: {**row, "interaction_type": "like"}), GIVEN,
        "the interaction_type 'like'", GIVES, "expected: one of explicit_positive, "
        "implicit_positive, implicit_negative, explicit_negative"),
    "a user": (
        filtered(lambda row: {**row, "user_id": "7"}), GIVEN, "another user_id: '7'", GIVES,
        "expected: changes of ('object_text', 'interaction_type') alone"),
    "an error": (
        filtered(lambda row: row["text"]), GIVEN, re.compile("Traceback(?s:.*)KeyError: 'text'"),
        "the function that --filter names failed", "expected: the row, changed or not, or None"),
    "nothing": (
        filtered(lambda row: None), "own:tidy", "None for each of 2 rows",
        "the function that --filter names leaves nothing to write",
        "expected: rows that it gives back"),
    "no model": (
        analysed(coverage.coverage, coverage.CoverageOptions(model="frist"), ("second", {}), ONE),
        None, None, "there is no model 'frist' among the runs", "expected: one of second, first",
        "to do: did you mean 'first'?"),
    "two taxonomies": (
        analysed(coverage.coverage, coverage.CoverageOptions(), ("b", {"dataset": "gist_mind"}),
                 ("a", {"options": Options(taxonomy=("Tea", "Rye"))})),
        None, "2 listed names, the bundled one", "the runs use different taxonomies",
        "expected: runs of one taxonomy"),
    "its own judge": (
        patch("harness.comparison.matching._own_judge", lambda *_: ("its candidate is the judge",))(
            analysed(scores.scores, TableOptions(), ONE)),
        None, "gist_synthetic: first is left out: its candidate is the judge",
        "no run is left to analyse", "expected: a run whose candidate is not its judge",
        "to do: --force takes runs in all the same"),
    "one window": (
        analysed(window_size.run, window_size.WindowOptions(), ONE), None, "100",
        "all tasks have the same window size", "expected: tasks that differ in their window size"),
    "two judges": (
        analysed(judge_validation.export, judge_validation.ExportOptions(out="items"),
                 ("a", {"judge": "llama"}), ("b", {"judge": "qwen"})),
        None, "llama in run-of-a, qwen in run-of-b", "the runs had different judges of evidence",
        "expected: runs of one judge", "to do: export the items of each judge apart"),
    "no label": (
        labelled("labels.csv"), "labels.csv", None, "nobody has labelled anything",
        "expected: rows with a rater and yes or no"),
    "no figure": (
        analysed(survey.outside, survey.OutsideOptions(figures="elo.csv", column="Elo"), ONE),
        "elo.csv", "gpt", "no model of the runs has a figure", "expected: first",
        "to do: name the models as the runs do"),
}  # fmt: skip


@pytest.mark.parametrize("case", [*DATA, *USE])
def test_tools_and_analyses(raised, kept, tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    call, where, found, *words = {**DATA, **USE}[case]
    kind = DataError if case in DATA else UsageError
    assert raised(kind, call, kept, where=where, found=found) == "\n".join(words)
    assert not Path("out").exists()
    assert {name: Path(name).read_text() for name in FILES} == FILES

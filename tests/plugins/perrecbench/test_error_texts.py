"""What is said of data, logs, adapters and runs that cannot be used; DIR is the test's folder."""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
import pytest
from builders.texts import write_csv, write_json_lines
from harness_perrecbench.analyses import answers, curves, domains, shots
from harness_perrecbench.grouping import build, describe
from harness_perrecbench.tuning import adapters, sft_export
from safetensors.numpy import save_file

from harness.base.errors import DataError, HarnessError, UsageError
from harness.contracts.benchmark import NoOptions

from .test_tuning import KEY_A, KEY_B, MODULE, adapter

HISTORIES, ITEMS, LISTED = "userid2history.json", "parentasin2item.json", "sample_behavior.json"
GROUPS, HELD_OUT = "item2group_avg_diff_sample-easy.json", "held_out-easy.json"
RECORDED, OF_HELD_OUT = "groups-easy.jsonl", "heldout-easy.jsonl"


def cell(file, column, found, expected, hint=None, *, at="row 1"):
    where = f"DIR/{file}, {at}, column '{column}'"
    return DataError, where, "a value that cannot be used", found, expected, hint


def lived(**histories):
    return {
        user: [{"parent_asin": item, "rating": rating} for item, rating in history.items()]
        for user, history in histories.items()
    }


def grouped(relative=1, **before):
    """The only group: users with so many ratings before it."""
    about = {"relative_rating": relative, "avg_rating": 3}
    return {"q": [[{"user_id": one, "history_len": n, **about} for one, n in before.items()]]}


def listed(**changed):
    return {LISTED: [{"user_id": "ann", "parent_asin": "q", "history_len": 1, **changed}]}


def user(name, behaviours=4, **changed):
    history = [{"title": "t", "rating": "4.0"}] * behaviours
    return {"uid": name, "avg": "3.2", "common": "5.0", "history": history, **changed}


def recorded(*users):
    return {RECORDED: [{"item": "i", "query": {"title": "i"}, "users": users}]}


def ranked(*ranks):
    [row] = recorded(user("ann"), user("bob"))[RECORDED]
    return {OF_HELD_OUT: [{**row, "rank_vector": ranks}]}


def reviewed(**changed):
    usual = {"user_id": "ann", "parent_asin": "tea", "rating": 3, "timestamp": 1}
    return {"log.jsonl": [{**usual, **changed}], "meta.jsonl": [{"parent_asin": "x", "title": "X"}]}


PUBLISHED = {
    HISTORIES: lived(ann={"a": 5, "q": 4}, bob={"b": 3, "q": 2}),
    ITEMS: {item: {"title": item} for item in "abq"},
    GROUPS: grouped(ann=1, bob=1),
}
TRAINING = {**PUBLISHED, HELD_OUT: grouped(ann=1, bob=1)}
OF_MEDIUM = "these are groups of level medium; perrec_easy_listwise reads those of level easy"
WHOLE = "give the folder of the published files with --data"
EITHER = f"the published files {HISTORIES}, {ITEMS}, {{}}\n      or the recorded groups {{}}".format
OPTIONS = "the options of task 'perrec'"
LACKS = "recorded groups lack the whole histories that this task's options need"
STRICT = "strict: false, and for pointwise questions shots: 0"
at_group, at_history = partial(cell, GROUPS, "groups"), partial(cell, HISTORIES, "history")
at_users, at_ranks = partial(cell, RECORDED, "users"), partial(cell, OF_HELD_OUT, "rank_vector")
HELD, LIST = {"split": "held_out"}, {"ask": "rating"}
CHANGED = [
    ({HISTORIES: lived(ann={"a": 0})}, {}, *at_history("0 (integer)",
     "a list of objects with parent_asin, rating (Expected `float` >= 1.0 at [0].rating)")),
    ({HISTORIES: lived(ann={"a": 5})}, {}, *at_group("'bob'", "a user in the table 'histories'")),
    ({ITEMS: {"q": {"title": "q"}}}, {}, *at_history("'a'", "an item in the table 'items'")),
    ({ITEMS: {"q": {}}}, {},
     *cell(ITEMS, "about", "{'title': None} (object)", "a title that is a string")),
    ({GROUPS: grouped(ann=3, bob=1)}, {},
     *at_group("3 (integer)", "at most 2, the behaviours of user 'ann'")),
    ({GROUPS: grouped(ann=0, bob=1)}, {}, *at_group("0 (integer)", "a behaviour before the query")),
    ({GROUPS: grouped(ann=1, bob=1, cid=1)}, {},
     *at_group("['ann', 'bob', 'cid'] (list)", "2 users in each group of level easy", OF_MEDIUM)),
    ({GROUPS: {"q": [grouped(ann=1)["q"][0] * 2]}}, {},
     *at_group("['ann', 'ann'] (list)", "each user of a group once")),
    ({GROUPS: grouped(3.5, ann=2, bob=1)}, {},
     *at_group("6.5 (number)", "a rating from 1 to 5 by user 'ann'")),
    ({}, {"ask": "pointwise", "shots": 5}, *at_group("1 (integer)", "at least 17 behaviours of user "
     "'ann' before the query, as the task's option `shots` is 5")),
    (listed(rating=6), LIST, *cell(LISTED, "rating", "6.0 (number)", "a rating from 1 to 5")),
    (listed(rating=4, history_len=-1), LIST,
     *cell(LISTED, "history_len", "-1 (integer)", "0 or more behaviours")),
    ({HELD_OUT: grouped(ann=1, bob=1)}, {"shots": 1}, DataError, "group 'q'",
     "too few held-out groups are suitable as examples",
     "0 of 1 about other things, of other users, without ties",
     "at least 1, the task's option `shots`"),
    ({}, HELD, DataError, "DIR", "the data has no complete set of held-out groups of level easy",
     f"no {HELD_OUT}\n      held-out groups of no level", EITHER(HELD_OUT, OF_HELD_OUT)),
    ({GROUPS.replace("easy", "medium") + ".gz": {}}, {"level": "hard"}, DataError, "DIR",
     "the data has no complete set of groups of level hard",
     "no item2group_avg_diff_sample-hard.json\n      groups of level easy, medium",
     EITHER("item2group_avg_diff_sample-hard.json", "groups-hard.jsonl"),
     "use --tasks perrec_easy_listwise or perrec_medium_listwise"),
    ({GROUPS: None, "tea/tea-processed/any.json": {}}, {}, DataError, "DIR",
     "the data has no complete set of groups of level easy",
     f"no {GROUPS}\n      groups of no level\n      folders of the domains tea",
     EITHER(GROUPS, RECORDED), "use --data DIR/tea --set domain=tea"),
]  # fmt: skip
LOADED = [
    *((PUBLISHED | files, *rest) for files, *rest in CHANGED),
    (recorded(), {"domain": "book"}, DataError, OPTIONS,
     "the data belong to another domain than the task",
     "domain: book, and recorded groups, which cover all domains together",
     "the domain of the files; `all` for files of several domains",
     "give a domain's folder with its name, as in --data DIR/beauty --set domain=beauty"),
    (recorded(user("ann", avg="nan")), {}, *at_users("'nan'", "a list of objects with history, avg, "
     "common, profile, uid (Expected `float` >= 1.0 at [0].avg)")),
    (recorded(user("ann"), user("ann")), {},
     *at_users("['ann', 'ann'] (list)", "each user of a group once")),
    (recorded(*map(user, "abc")), {},
     *at_users("'3 users'", "2 users in each group of level easy", OF_MEDIUM)),
    (recorded(user("ann"), user("bob", 3)), {}, *at_users("'3 behaviours'",
     "at least 4 behaviours of each user, the task's option `k`",
     "set a smaller k, as in --set k=3: recorded groups hold only the retrieved behaviours")),
    (recorded(user("ann"), user("bob")), {"profile": "full"},
     *at_users("{'profile': None} (object)", "a profile of each user, or the option profile: none")),
    (ranked(1, 1), HELD, *at_ranks("[1, 1] (list)", "the numbers from 1 to 2, each once")),
    (ranked("1", 2), HELD, *at_ranks("['1', 2] (list)", "the numbers from 1 to 2, each once")),
    (ranked(1, 2, 3), HELD,
     *cell(OF_HELD_OUT, "users", "'2 users'", "3 users, as in the group's true order")),
    (recorded(), {"strict": True}, DataError, OPTIONS, LACKS, "strict: true", STRICT, WHOLE),
    (recorded(), {"shots": 1, "ask": "pointwise"}, DataError, OPTIONS, LACKS,
     "shots: 1, with ask: pointwise", STRICT, WHOLE),
    (recorded(), LIST, DataError, "DIR",
     "single behaviours need whole histories, which the data lacks",
     f"no {HISTORIES}, no {ITEMS}", f"{HISTORIES} and {ITEMS}", WHOLE),
    ({}, {"thought": True, "tail": "dot"}, UsageError, "options: tail",
     "no chain-of-thought prompt exists for this tail", "tail: dot with thought: true",
     "tail: now, or thought: false"),
    ({}, {"system": "authors", "wording": "b"}, UsageError, "options: system",
     "no prompt exists for this system", "system: authors with wording: b",
     "system: paper, or wording: a"),
]  # fmt: skip
BUILT = [
    ({}, {"reviews": ("all=log.jsonl",)}, UsageError, "--reviews",
     "the name 'all' is reserved for the folder of all domains", "all=log.jsonl",
     "DOMAIN=FILE with the domain's own name",
     "if this is a file's name, give it as ./all=log.jsonl"),
    ({}, {}, DataError, "DIR/meta.jsonl", "the file does not exist", None,
     "the path of an existing file"),
    (reviewed(rating=3.14159), {}, *cell("log.jsonl", "rating", "3.14159 (number)",
     "a number from 1 to 5, with at most three decimals")),
    (reviewed(rating=0), {"bad_rows": "left_out"}, DataError, "DIR/log.jsonl",
     "the files of reviews contain no usable rating",
     "1 rows without an id, a time or a rating from 1 to 5",
     "rows with user_id, parent_asin, a timestamp and a rating from 1 to 5"),
    (reviewed(), {}, DataError, None, "no item passes all rules, so there are no groups",
     """left by each rule:
      ratings  users  items  items removed  ratings …
            1      1      1                 rated from 1 to 5, with ids and a time
            0      0      0              1  of an item with a title
            0      0      0              0  the user's first of the item
            0      0      0              0  after more than 20 others of the user
            0      0      0              0  of an item with 4 such within 30 days
            0      0      0              0  in the best window, by 4 or more users who are more \
than 0.6 apart
            0      0      0              0  by 5 users an item at most""",
     "at least one item after the last rule",
     "try a longer window (--window_days), shorter histories (--min_history), a smaller difference "
     "(--min_difference), smaller groups (--least_members) or a larger log"),
    ({"out/mine.txt": {}}, {}, UsageError, "DIR/out", "the folder for the groups is not empty",
     "mine.txt", "--out: an empty folder, or one that does not exist yet"),
]  # fmt: skip
DESCRIBED = [
    ({"tea/tea-processed/any.json": {}}, {"domain": "coffee"}, DataError, "DIR",
     "the folder has no groups of the domain 'coffee'", "folders of the domains tea",
     "coffee/coffee-processed"),
    ({"tea/tea-processed/any.json": {}}, {}, DataError, "DIR", "the folder has no groups", None,
     f"files such as {GROUPS}", "choose a domain: --domain tea"),
    ({**PUBLISHED, HISTORIES: None}, {}, DataError, "DIR",
     "the folder has groups, but lacks their histories or items", f"no {HISTORIES}",
     f"{HISTORIES} and {ITEMS}"),
    ({**PUBLISHED, GROUPS: grouped(dan=1)}, {}, DataError, f"DIR/{GROUPS}, item q",
     "a user of a group has no history", "dan", f"a user of {HISTORIES}"),
    (recorded(), {}, DataError, "DIR", "recorded groups cannot be used here", RECORDED,
     "the published files: the description needs whole histories, which recorded groups lack"),
]  # fmt: skip
EXPORTED = [
    ({**TRAINING, GROUPS: None}, {}, DataError, "DIR",
     "there are no test groups to check the training data against", None,
     "the published files, with the test groups of at least one level"),
    (TRAINING, {"level": "hard"}, DataError, "DIR",
     "the folder lacks held-out groups, or their histories and items",
     "held-out groups of easy", "the published files, with those of level hard"),
    (TRAINING, {"profile": "full"}, DataError, "DIR",
     "the training data shows profiles, and some users have none",
     "2 users without one in held-out groups of level easy", "a profile of each user",
     "use --profile no_text or --profile none, or add the profiles to the data"),
    (TRAINING, {}, DataError, "DIR", "the held-out groups give no training data",
     "contain a test rating: 5", "questions with a known answer and without test ratings"),
    (recorded(), {}, DataError, "DIR", "recorded groups cannot be used here", RECORDED,
     "the published files: training data needs whole histories, which recorded groups lack"),
]  # fmt: skip


def build_groups(folder, **options):
    usual = {"reviews": (f"{folder}/log.jsonl",), "meta": (folder / "meta.jsonl",)}
    build.run(build.Settings(out=folder / "out", **{**usual, **options}))


def describe_groups(folder, **options):
    describe.run(describe.Options(data=folder, **options))


def export(folder, **options):
    usual = {"data": folder, "out": folder / "out", "profile": "none", "k": 1}
    sft_export.run(sft_export.Settings(**{**usual, **options}))


def refused(folder, said, call, *given, **options):
    with pytest.raises(HarnessError) as caught:
        call(*given, **options)
    error = caught.value
    parts = (error.where, error.problem, error.found, error.expected, error.hint)
    told = [part and part.replace(str(folder), "DIR") for part in parts]
    assert (type(error), *told) == (*said, None)[:6]


FILES = {None: LOADED, build_groups: BUILT, describe_groups: DESCRIBED, export: EXPORTED}


@pytest.mark.parametrize(("call", "row"), [(call, row) for call in FILES for row in FILES[call]])
def test_files_that_cannot_be_used_are_refused(tmp_path, load_data, call, row):
    files, options, *said = row
    for name, content in files.items():
        if content is not None:
            write_json_lines(tmp_path / name, content if name.endswith("l") else [content])
    usual = {} if call else {"ask": "listwise", "profile": "none"}
    refused(tmp_path, said, call or load_data, tmp_path, **{**usual, **options})


def test_a_least_number_of_users_above_the_largest_is_refused(printed):
    files = "--reviews", "log.jsonl", "--meta", "meta.jsonl", "--out", "out"
    assert printed("data", "perrec-groups", *files, "--least_members", "6", code=2).err == (
        "harness: these options cannot be combined\n"
        "  found:    least_members=6 is more than members=5\n"
    )


A, B = {KEY_A: np.ones((1, 2), np.float32)}, {KEY_B: np.ones((2, 1), np.float32)}
CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
ADAPTERS = [
    ({}, A | B, {"alpha": 0.7, "beta": 0.4}, UsageError, None,
     "the weights leave a negative weight for the listwise adapter", "--alpha 0.7 and --beta 0.4",
     "a sum of at most 1"),
    ({"lora_alpha": 3}, A | B, {"method": "factors"}, UsageError, "DIR/pair",
     "the factors of adapters with different lora_alpha cannot be averaged", "lora_alpha 3",
     "lora_alpha 2, as in DIR/point", "use --method products"),
    ({"r": 0}, A | B, {}, DataError, f"DIR/pair/{CONFIG}",
     "the adapter's configuration cannot be used", "Expected `int` >= 1 - at `$.r`",
     f"the {CONFIG} of a LoRA adapter in PEFT's format, next to {WEIGHTS}"),
    ({"modules_to_save": ["lm_head"]}, A | B, {}, DataError, f"DIR/pair/{CONFIG}",
     "the adapter has parts that cannot be merged", "modules_to_save: ['lm_head']",
     "modules_to_save: None or modules_to_save: []"),
    ({}, A, {}, DataError, f"DIR/pair/{WEIGHTS}",
     "the adapter does not consist of pairs of matrices", MODULE,
     "for each module, a tensor ending in .lora_A.weight and one ending in .lora_B.weight"),
    ({"r": 2}, A | B, {}, DataError, f"DIR/pair/{WEIGHTS}, {MODULE}",
     "the matrices of a module do not have the adapter's rank", "B (2, 1), A (1, 2)", "rank 2"),
    ({"revision": "v2"}, A | B, {}, DataError, "DIR/pair",
     "adapters of different revision cannot be merged", "v2", "None, as in DIR/point"),
    ({}, B | {KEY_A: np.ones((1, 3), np.float32)}, {}, DataError, f"DIR/pair, {MODULE}",
     "adapters of different modules cannot be merged", "2 x 3", "2 x 2, as in DIR/point"),
    ({}, None, {}, DataError, f"DIR/pair/{WEIGHTS}", "the adapter's weights cannot be read",
     f"[Errno 2] No such file or directory: 'DIR/pair/{WEIGHTS}'",
     f"a folder in PEFT's format, with {CONFIG} and {WEIGHTS}"),
    ({}, A | {KEY_B: np.ones((2, 1))}, {}, DataError, f"DIR/pair/{WEIGHTS}, {KEY_B}",
     "the adapter's weights have a type that cannot be merged", "F64", "F32, F16, BF16"),
    (None, A | B, {}, UsageError, None,
     "reading adapters needs the package safetensors", None, None,
     "pip install 'user-understanding-harness[tuning]'"),
]  # fmt: skip


@pytest.mark.parametrize("row", ADAPTERS)
def test_adapters_that_cannot_be_merged_are_refused(tmp_path, monkeypatch, row):
    config, tensors, options, *said = row
    three = {"pointwise": "point", "pairwise": "pair", "listwise": "list"}
    for name in three.values():
        adapter(tmp_path / name, [[1, 0]], [[1], [0]], **(config or {} if name == "pair" else {}))
    (tmp_path / "pair" / WEIGHTS).unlink()
    if tensors:
        save_file(tensors, tmp_path / "pair" / WEIGHTS)
    if config is None:
        monkeypatch.setitem(sys.modules, "safetensors", None)
    folders = {name: tmp_path / folder for name, folder in {"out": "merged", **three}.items()}
    refused(tmp_path, said, adapters.run, adapters.Options(**{**folders, **options}))


ONLY, BOOKS = "perrec_easy_pointwise", {"domain": "books"}
RUNS = [
    (answers.positions, {}, (), UsageError, None, "no task asks pairwise", ONLY,
     "a task with ask: pairwise"),
    (answers.errors, {"ask": "listwise"}, (), UsageError, None,
     "no task predicts ratings of groups", "perrec_easy_listwise",
     "a task with ask: pointwise, ideally with a task with ask: rating"),
    (shots.run, {"ask": "rating"}, (), UsageError, None, "no task asks for rankings of groups",
     "perrec_easy_rating", "a task with ask: pointwise, pairwise or listwise"),
    (shots.run, {}, (), UsageError, None,
     "no model has results for several numbers of examples or behaviours", ONLY,
     "tasks that differ in the options shots or k"),
    (curves.by_scale, {}, ("model,parameters", "ada,0"), UsageError,
     "DIR/a.csv, column 'parameters'", "the size of a model cannot be used", "ada: 0",
     "a number above 0"),
    (curves.by_scale, {}, ("model,parameters", "ben,7"), UsageError, "DIR/a.csv",
     "no model of the runs has a size", "ben", "ada", "use the runs' names of models in the table"),
    (domains.run, {}, ("item,count", "i1,1"), UsageError, None, "no task covers a single domain",
     ONLY, "tasks with the option domain"),
    (domains.run, BOOKS, ("item,count", "x,1"), UsageError, "DIR/a.csv",
     "no item of the runs has a count", None, "items by id, as in the groups, or by title"),
    (domains.run, BOOKS, ("item,count", "i1,-1"),
     *cell("a.csv", "count", "-1.0 (number)", "0 or more", at="row 1")),
    (domains.run, BOOKS, ("item,title,count", ",,1"),
     *cell("a.csv", "item", "nothing", "an item by id or by title", at="row 1")),
    (domains.run, BOOKS, ("item,count", "i1,1", "i1,2"),
     *cell("a.csv", "count", "2.0 (number)", "the same count in all rows of an item", at="row 2")),
    (domains.run, BOOKS, ("title,count", "Tea,1", "tea ,2"),
     *cell("a.csv", "count", "2.0 (number)", "the same count in all rows of a title", at="row 2")),
]  # fmt: skip


@pytest.mark.parametrize("row", RUNS)
def test_runs_of_which_an_analysis_can_say_nothing_are_refused(kept, tmp_path, row):
    call, options, lines, *said = row
    file = write_csv(tmp_path / "a.csv", *lines)
    given = {domains.run: domains.Options(counts=file)}
    given[curves.by_scale] = curves.ScaleOptions(figures=file)
    tasks = [kept("ada", {"i1": 1.0}, **options)]
    refused(tmp_path, said, call, tasks, given.get(call, NoOptions()))

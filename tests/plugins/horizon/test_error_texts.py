"""What is said of reviews, indexes and checkpoints that cannot be used, word for word."""

import re
from pathlib import Path

import pytest
from builders.catalogue import indexed, titles_of, write_curated
from builders.horizon import TAU, write_lines, write_log
from harness_horizon.catalogue.faiss_index import FaissIndex
from harness_horizon.catalogue.index_folder import INDEX
from harness_horizon.catalogue.retriever import make as make_catalogue
from harness_horizon.recommenders.model import make as make_recommender

from harness.base.errors import DataError, HarnessError, UsageError
from harness.contracts.model import ModelSettings

from .test_curation import BOOKS, DAY, ROWS, failed, line

A_YEAR_LATER = [(user, item, time + 400 * DAY * (time >= TAU)) for user, item, time in ROWS]


def csv(log, text):
    (log / "reviews/Books.jsonl").unlink()
    (log / "reviews/Books.csv").write_text(text)


CURATION = {
    "too many bad rows": (
        lambda log: write_lines(
            log / "reviews/Books.jsonl",
            [line(timestamp=TAU // 1000), line(user_id=None), *([line()] * 98)],
        ), {}, """\
Books.jsonl: too many rows cannot be used
  found:    2 of 100 rows:
      1 with a time in seconds
      1 with no user
  expected: at most 1%; times in milliseconds since 1970"""),
    "no metadata": (
        lambda log: write_log(log, {"Toys": ROWS, "Pets": ROWS}, {"Toys": BOOKS}), {}, """\
--meta: 1 of 3 categories have no metadata
  found:    Pets
  expected: a file such as meta_Pets.jsonl.gz for each
  to do:    fetch these files, or take the reviews of these categories away"""),
    "no title": (lambda log: write_log(log, {}, {"Books": dict.fromkeys(BOOKS)}), {}, """\
DIR/meta: there are too few items to rank
  found:    0 items with a title that somebody reviewed
  expected: at least 1 (--least_items)"""),
    "nobody after the cutoff": (
        lambda log: write_log(log, {"Books": [row for row in ROWS if row[2] < TAU]}, {}), {}, """\
DIR/reviews: no user is active after the cutoff, so nothing can be tested
  found:    0 users with a review dated 2020 or later
  expected: reviews dated 2020 or later"""),
    "nobody of 2020": (
        lambda log: write_log(log, {"Books": A_YEAR_LATER}, {}), {"published": True}, """\
DIR/reviews: no user is active after the cutoff, so nothing can be tested
  found:    20 users with a review dated 2020 or later
  expected: reviews of the calendar year 2020"""),
    "little memory": (lambda log: None, {"memory": "100MB"}, """\
--memory: the memory is too small for this work
  found:    100MB
  expected: 500MB or more"""),
    "no size": (lambda log: None, {"memory": "much"}, """\
the value of --memory is not valid
  found:    much
  expected: 8GB, 500MB …"""),
    "two files": (
        lambda log: (log / "reviews/Books.csv").write_text("user_id,parent_asin\n"), {}, """\
--reviews: the category Books has two files
  found:    Books.csv, Books.jsonl
  expected: one file for each category"""),
    "no files": (lambda log: (log / "reviews/Books.jsonl").unlink(), {}, """\
--reviews: there are no files of reviews
  found:    DIR/reviews
  expected: files that end in .jsonl, .csv, .parquet, .jsonl.gz, .csv.gz"""),
    "no folder": (lambda log: None, {"meta": (Path("nowhere"),)}, """\
--meta: the folder does not exist
  found:    nowhere"""),
    "no column": (lambda log: csv(log, "user,parent_asin,rating\nu,b0,5\n"), {}, """\
DIR/reviews/Books.csv: the file has no column user_id, timestamp
  found:    user, parent_asin, rating
  expected: user_id, parent_asin, timestamp"""),
    "no rows": (lambda log: (log / "reviews/Books.jsonl").write_text(""), {}, """\
Books.jsonl: the file has no rows
  expected: at least one row"""),
}  # fmt: skip


@pytest.mark.parametrize("damage", CURATION)
def test_reviews_that_cannot_be_used(tmp_path, damage):
    write_log(tmp_path, {"Books": ROWS}, {"Books": BOOKS})
    do, options, text = CURATION[damage]
    do(tmp_path)
    assert failed(tmp_path, HarnessError, **options) == text


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("index")
    indexed(write_curated(folder / "data", titles_of(20)), folder / "index")
    return folder / "index"


@pytest.mark.parametrize(
    ("make", "args", "said"),
    [
        (make_recommender, {}, "needs its checkpoint"),
        (make_recommender, {"model": "x", "devise": "cpu"}, "did you mean 'device'"),
        (make_recommender, {"model": "x", "device": "tpu"}, "no such device"),
        (make_recommender, {"model": "x", "concurrency": "-1"}, "no whole number"),
        (make_catalogue, {"model": "index", "devise": "cpu"}, "did you mean 'device'"),
        (make_catalogue, {"model": "index", "device": "tpu"}, "no such device"),
        (make_catalogue, {"model": "index", "concurrency": "0"}, "no whole number"),
        (make_catalogue, {"model": "index", "device": "cuda"}, "cannot use a GPU"),
    ],
)
def test_arguments_of_models(index, make, args, said):
    given = {name: str(index) if value == "index" else value for name, value in args.items()}
    with pytest.raises(UsageError, match=said):
        make(ModelSettings(args=given))


def test_an_index_of_other_options_or_another_catalogue_or_that_faiss_cannot_read(index, tmp_path):
    data = index.parent / "data"
    write_log(tmp_path / "full", {}, {})
    for given, out, options, said in (
        (data, index, {"dtype": "fp32"}, "dtype: fp32 instead of fp16"),
        (data, index, {"embedder": "hashing"}, "hashing instead of hashing:dimensions=48"),
        (write_curated(tmp_path / "other", ["another"]), index, {}, "items: "),
        (data, tmp_path / "full", {}, "the folder for the index is not empty"),
    ):
        with pytest.raises(UsageError, match=said):
            indexed(given, out, **options)
    with pytest.raises(DataError, match="the curated data has no titles"):
        indexed(write_curated(tmp_path / "data", [None, "None", " "]), tmp_path / "out")
    (tmp_path / INDEX).write_bytes(b"no index" * 100)
    with pytest.raises(DataError, match=re.escape(str(tmp_path / INDEX))) as caught:
        FaissIndex(tmp_path / INDEX)
    assert "faiss cannot read this index" in str(caught.value)
    assert "harness horizon index --data" in str(caught.value)

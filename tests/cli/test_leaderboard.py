"""`harness leaderboard`: pages from the runs of a folder."""

import json
import shutil
from pathlib import Path

import msgspec
import pytest
from builders.report_pages import ReportPage
from builders.runs import write_sealed
from inline_snapshot import snapshot

import harness
from harness.analysis.leaderboard import Leaderboard, leaderboard
from harness.base.errors import DataError
from harness.cli.leaderboard import _tasks
from harness.reporting.html.leaderboard_pages import index_html
from harness.reporting.html.markup import read_secrets
from harness.reporting.leaderboard_files import site_files
from harness.runs.manifest import write_manifest
from harness.runs.run_folder import RunFolder

HOSTILE = "<script>alert(1)</script>\u202e"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of three finished runs: two that agree and one with another seed."""
    folder = tmp_path_factory.mktemp("runs")
    for name, seed in (("one", 0), ("two", 0), ("three", 1)):
        harness.evaluate(
            "interests", model="baseline", judge="lexical", data="sample", limit=4, seed=seed,
            name=name, output_path=folder, no_store=True, quiet=True, tag={"model": name},
        )  # fmt: skip
    return folder


@pytest.fixture
def runs(made, tmp_path, monkeypatch):
    """A copy of these runs that a test may change."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(made, tmp_path / "runs"))


def test_a_page_for_each_set_of_runs_and_one_over_all(runs, printed):
    pages = [Path(name) for name in printed("leaderboard", "runs", "-o", "site").out.split()]
    assert len(pages) == 6
    assert {page.suffix for page in pages} == {".html", ".json"}
    assert sorted(Path("site").iterdir()) == sorted(pages)
    index = json.loads(Path("site/index.json").read_text())
    assert [page["ranks"] for page in index["pages"]] == [
        {"one": [1, 2], "two": [1, 2]}, {"three": [1, 1]},
    ]  # fmt: skip
    board = json.loads(Path("site/interests.json").read_text())
    assert board["title"] == ("NOT COMPARABLE with published results: interests (seed 0): support")
    shown, index = (
        ReportPage(Path(f"site/{name}.html").read_text()) for name in ("interests", "index")
    )
    cells = [cell for table in shown.tables for row in table.rows for cell in row]
    assert cells.count("1–2") == 2
    for one in board["ranked"]:
        assert f"{one['common']['value']:.3f}" in cells
    linked = [about["href"] for name, about in index.elements if name == "a"]
    assert {link for link in linked if link[:1] != "#"} <= {page.name for page in pages}
    printed("leaderboard", "runs", "-o", "site", "--tag", "model=three")
    index = json.loads(Path("site/index.json").read_text())
    assert [page["ranks"] for page in index["pages"]] == [{"three": [1, 1]}]


def test_what_cannot_be_shown_is_left_out_with_why(runs, printed):
    """Of an unfinished copy, a task whose plugin is gone, an unfinished and a damaged run."""
    first, second, third = sorted(runs.iterdir())
    shutil.copytree(first, runs / "whole")
    (first / "interests" / "summary.json").unlink()
    torn = Path(shutil.copytree(third, runs / "torn"))
    (third / "interests" / "summary.json").unlink()
    values = json.loads((second / "manifest.json").read_text())
    values["tasks"]["interests"]["definition"]["benchmark"] = "gone"
    write_sealed(second / "manifest.json", values)
    (torn / "manifest.json").write_text("{}")
    said = printed("leaderboard", "runs", "-o", "site").err
    left_out = json.loads(Path("site/index.json").read_text())["left_out"]
    assert left_out[first.name] == "a copy of whole, and a run counts once"
    assert "gone" in left_out[f"{second.name}, interests"]
    assert left_out[f"{third.name}, interests"] == "task 'interests' is not finished"
    assert "damaged" in left_out[torn.name] or "manifest" in left_out[torn.name]
    assert said.count("left out: ") == 4
    assert "a copy of whole" in Path("site/index.html").read_text()


def test_the_title_of_the_first_page_says_which_pages_are_not_comparable(runs, monkeypatch):
    monkeypatch.chdir(runs.parent)
    boards = leaderboard(_tasks(runs, {})[0]).boards
    known = msgspec.structs.replace(boards[0], not_comparable_because=())
    stamp = "<title>Leaderboard: NOT COMPARABLE with published results"
    assert f"{stamp}</title>" in index_html(Leaderboard(boards=boards, left_out={}))
    mixed = index_html(Leaderboard(boards=(known, *boards[1:]), left_out={}))
    assert f"{stamp}, in part</title>" in mixed
    for none in ((known,), ()):
        assert "<title>Leaderboard</title>" in index_html(Leaderboard(boards=none, left_out={}))


def test_a_folder_without_finished_runs(runs, exits):
    Path("empty").mkdir()
    said = exits(1, DataError, "leaderboard empty -o site", where="empty")
    assert said == snapshot("""\
no run here has a finished task
expected: a folder of runs, such as `runs`\
""")
    assert not Path("site").exists()


@pytest.fixture
def hostile(runs, printed):
    """The page of a task of which a model's name is hostile, and the page over all."""
    folders = map(RunFolder, runs.iterdir())
    folder = next(one for one in folders if one.manifest().tags["model"] == "one")
    manifest = folder.manifest()
    tags = {**manifest.tags, "model": HOSTILE}
    write_manifest(folder.manifest_file, msgspec.structs.replace(manifest, tags=tags))
    printed("leaderboard", "runs", "-o", "site")
    return [Path(f"site/{name}.html") for name in ("index", "interests")]


def test_names_that_look_like_html_are_shown_as_text(hostile):
    for page in hostile:
        text = page.read_text("utf-8")
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
        assert "<script>alert" not in text and "\u202e" not in text
        assert [name for name, _ in ReportPage(text).elements].count("script") == 1


def test_no_page_and_no_document_names_a_key_or_the_home_folder(tmp_path, monkeypatch):
    home = tmp_path / "somebody"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("OTHER_API_KEY", "n0t-to-be-seen-by-anyone")
    read_secrets()
    why = {"a run": f"{home}/runs/a is damaged", "another": "n0t-to-be-seen-by-anyone"}
    files = site_files(Leaderboard(boards=(), left_out=why))
    assert files.keys() == {"index.html", "index.json"}
    for text in files.values():
        assert str(home) not in text
        assert "n0t-to-be-seen" not in text
        assert "~/runs/a is damaged" in text

import fcntl
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import msgspec
import pytest
from builders.hub_server import asking
from builders.processes import wait_until
from builders.tables import data_in
from builders.web_data import users
from builders.web_server import CSV, Page, sha256, zipped

from harness.base.errors import DataError, PluginError, StorageError, Unavailable, UsageError
from harness.contracts.task import (
    BuildSpec,
    Column,
    DataSpec,
    HubFilesSpec,
    InputSpec,
    SourceSpec,
    TableSpec,
    UrlSpec,
)
from harness.data import build, fetch
from harness.data.fetch import BuildTool, Fetching
from harness.data.hub import fetch_files

MORE = b"user,x\nu3,3\n"
DEAD = "http://127.0.0.1:9/none.csv"

pytestmark = pytest.mark.usefixtures("cache")


class Tool:
    """A data tool that writes all rows of its files into one; `runs` are the files of each run."""

    def __init__(self, fails=None, plugin="mine 1"):
        self.runs: list[dict[str, list[str]]] = []
        self.fails = fails
        self.plugin = plugin

    def __call__(self, spec):
        return BuildTool(plugin=self.plugin, options={"seed": 0, **spec.options}, run=self.run)

    def run(self, inputs, out, _):
        self.runs.append({name: [path.name for path in paths] for name, paths in inputs.items()})
        (out / "deep").mkdir(parents=True)
        rows = [
            line
            for paths in inputs.values()
            for path in paths
            for line in path.read_bytes().splitlines()[1:]
        ]
        (out / "deep/people.csv").write_bytes(b"\n".join([b"user,x", *rows]))
        if self.fails is not None:
            raise self.fails


def at(address, **url):
    return InputSpec(url=UrlSpec(address=address, **url))


def building(*inputs, first=(), **options):
    build = BuildSpec(tool="join", inputs={"reviews": inputs}, options=options)
    return DataSpec(
        sources=(*first, SourceSpec(build=build)),
        tables={"people": TableSpec(files=("deep/people.csv",), columns={"user": Column()})},
    )


def opened(spec, tool, *, data=None, **fetching):
    allowed = Fetching(**{"say": lambda line: None, "tools": tool, **fetching})
    return data_in(data, spec, task="quiz", fetching=allowed)


@pytest.fixture
def spec(web):
    """Data built from two addresses, one of them an archive."""
    web.pages["/a.csv"] = Page(CSV)
    web.pages["/b.zip"] = Page(zipped(**{"one.csv": MORE, "two.csv": MORE}))
    return building(at(f"{web.url}/a.csv"), at(f"{web.url}/b.zip"))


def test_data_is_built_once_says_of_what_and_then_needs_neither_network_nor_inputs(
    web, spec, cache
):
    tool, said = Tool(), list[str]()
    data = opened(spec, tool, say=said.append)
    assert users(data) == ["u1", "u2", "u3", "u3"]
    assert tool.runs == [{"reviews": ["a.csv", "one.csv", "two.csv"]}]
    assert "building data from 3 files, once: harness data join" in said
    assert data.built
    assert data.why_incomparable == ("data built here, not the published data",)
    about = data.describe()
    assert (about["origin"], about["comparable"]) == ("build", False)
    assert (about["tool"], about["plugin"], about["options"]) == ("join", "mine 1", {"seed": 0})
    first, *archived = about["inputs"]["reviews"]
    assert first == {"source": f"{web.url}/a.csv", "file": "a.csv", "digest": sha256(CSV)}
    assert [one["file"] for one in archived] == ["one.csv", "two.csv"]
    assert about["tables"]["people"]["files"][0]["sha256"]
    for folder in cache.glob("sha256-*"):
        shutil.rmtree(folder)
    web.pages.clear()
    assert users(opened(spec, tool, offline=True)) == users(data)
    assert users(opened(spec, tool, look=True)) == users(data)
    assert len(tool.runs) == 1


def test_other_options_inputs_or_versions_of_the_plugin_are_another_build(web, spec):
    tool, newer = Tool(), Tool(plugin="mine 2")
    a, b = at(f"{web.url}/a.csv"), at(f"{web.url}/b.zip")
    web.pages["/again.csv"] = Page(CSV)
    digests = [
        opened(one, tool).describe()["digest"]
        for one in (
            spec, building(a, b, seed=1), building(a, b, wide=True), building(b, a), building(a),
            building(at(f"{web.url}/again.csv", name="a.csv")), building(a, b, seed=0),
        )
    ]  # fmt: skip
    # Equal are the same bytes from elsewhere, and an option at its default.
    assert [digests.index(one) for one in digests] == [0, 1, 2, 3, 4, 4, 0]
    assert opened(spec, newer).describe()["digest"] not in digests
    assert (len(tool.runs), len(newer.runs)) == (5, 1)


def test_a_tool_may_need_no_input(cache):
    tool = Tool()
    assert [opened(building(), tool).built for _ in range(2)] == [True, True]
    assert tool.runs == [{"reviews": []}]


@pytest.mark.parametrize(
    "error", [PluginError("it broke"), OSError(28, "No space left"), KeyboardInterrupt()]
)
def test_what_a_tool_did_not_finish_is_no_build(spec, cache, error):
    kind = StorageError if isinstance(error, OSError) else type(error)
    with pytest.raises(kind):
        opened(spec, Tool(fails=error))
    with pytest.raises(Unavailable, match="was not built yet"):
        opened(spec, Tool(), look=True)
    assert [path.name for path in (cache / "built").iterdir() if path.is_dir()] == []
    tool = Tool()
    assert len(users(opened(spec, tool))) == 4
    assert len(tool.runs) == 1


class Slow(Tool):
    """A tool that goes on in its folder: each run adds a line and fails unless it is the third."""

    def __call__(self, spec):
        return replace(super().__call__(spec), continues=True)

    def run(self, inputs, out, progress):
        (out / "deep").mkdir(parents=True, exist_ok=True)
        people = out / "deep/people.csv"
        people.write_text((people.read_text() if people.exists() else "user,x\n") + "u1,1\n")
        progress("lines", len(people.read_text().splitlines()) - 1, 3)
        if people.read_text().count("u1") < 3:
            raise KeyboardInterrupt


def test_a_tool_that_continues_goes_on_with_what_it_left(spec, cache, monkeypatch):
    monkeypatch.setattr(build, "REPORT_SECONDS", 0.0)
    said: list[str] = []
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            opened(spec, Slow(), say=said.append)
        with pytest.raises(Unavailable, match="was not built yet"):
            opened(spec, Slow(), look=True)
    assert users(opened(spec, Slow(), say=said.append)) == ["u1", "u1", "u1"]
    assert [one for one in said if "lines" in one] == [f"  lines: {n} of 3" for n in (1, 2, 3)]
    assert len([path for path in (cache / "built").iterdir() if path.is_dir()]) == 1


def test_what_was_begun_with_other_inputs_is_removed(web, spec, cache):
    with pytest.raises(KeyboardInterrupt):
        opened(spec, Slow())
    shutil.rmtree(cache / "sources")
    web.pages["/a.csv"] = Page(MORE, etag='"two"')
    with pytest.raises(KeyboardInterrupt):
        opened(spec, Slow())
    (begun,) = (cache / "built").glob("*/*/data/deep/people.csv")
    assert begun.read_text().count("u1") == 1


def test_inputs_that_cannot_be_had_are_told(web, spec):
    tool = Tool()
    with pytest.raises(Unavailable) as offline:
        opened(spec, tool, offline=True)
    assert "of --offline" in str(offline.value.found)
    with pytest.raises(Unavailable) as gone:
        opened(building(at(f"{web.url}/a.csv"), at(DEAD)), tool)
    assert "127.0.0.1:9" in str(gone.value.where)
    assert tool.runs == []


def test_a_build_follows_a_source_that_cannot_be_had_or_is_chosen(web):
    web.pages["/a.csv"] = Page(CSV)
    web.pages["/published.zip"] = Page(zipped(**{"deep/people.csv": MORE}))
    tool, a = Tool(), at(f"{web.url}/a.csv")
    gone = building(a, first=(SourceSpec(url=UrlSpec(address=DEAD)),))
    assert opened(gone, tool).origin == "build"
    there = UrlSpec(address=f"{web.url}/published.zip")
    spec = building(a, first=(SourceSpec(url=there),))
    assert users(opened(spec, tool)) == ["u3"]
    chosen = opened(spec, tool, data="build")
    assert users(chosen) == ["u1", "u2"]
    assert chosen.describe()["in_place_of"] == there.address
    none = msgspec.structs.replace(spec, sources=spec.sources[:1])
    with pytest.raises(DataError, match="no source that builds its data"):
        opened(none, tool, data="build")


def test_a_build_without_its_data_is_built_again_and_a_broken_record_told(spec, cache):
    tool = Tool()
    rows = users(opened(spec, tool))
    (kept,) = (cache / "built").glob("*/data")
    shutil.rmtree(kept)
    with pytest.raises(Unavailable, match="was not built yet"):
        opened(spec, tool, look=True)
    assert users(opened(spec, tool)) == rows
    assert len(tool.runs) == 2
    (file,) = (cache / "built").glob("*.json")
    file.write_text("{")
    with pytest.raises(DataError, match="record of built data") as caught:
        opened(spec, Tool())
    assert caught.value.where == str(file)


def test_what_a_killed_build_left_is_no_build(spec, cache):
    with pytest.raises(KeyboardInterrupt):
        opened(spec, Slow())
    (left,) = (cache / "built").glob("*/*/data/deep/people.csv")
    left.with_name("half.csv").write_text("user")
    assert len(users(opened(spec, Tool()))) == 4
    assert list((cache / "built").rglob("half.csv")) == []


def test_what_another_process_builds_is_awaited_and_taken(spec, cache):
    tool, said = Tool(), list[str]()
    built = users(opened(spec, tool))
    (lock,), (record,) = ((cache / "built").glob(f"*.{end}") for end in ("lock", "json"))
    content = record.read_bytes()
    record.unlink()
    with ThreadPoolExecutor(1) as pool, lock.open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiting = pool.submit(opened, spec, tool, say=said.append)
        wait_until(lambda: said)
        assert said == ["another process builds the data of task 'quiz': waiting for it"]
        record.write_bytes(content)
        fcntl.flock(held, fcntl.LOCK_UN)
        assert users(waiting.result()) == built
    assert len(tool.runs) == 1


def test_inputs_come_from_the_hub_and_much_is_asked_for(hub, tmp_path, monkeypatch):
    def fetched(large, *files, download=False, **settings):
        monkeypatch.setattr(fetch, "LARGE", large)
        said: list[str] = []
        with asking(tmp_path, hub.url, **settings):
            folder, names = fetch_files(
                HubFilesSpec(repo="people/notes", files=files),
                task="quiz",
                fetching=Fetching(say=said.append, download=download),
            )
        return names, [(folder / name).read_text() for name in names], said

    with pytest.raises(UsageError, match="a large download must be asked for") as caught:
        fetched(10, "train.jsonl", "extra/*")
    size = sum(map(len, hub.repos["people/notes"]["2" * 40].values()))
    assert caught.value.found == f"{size} bytes"
    with pytest.raises(DataError, match=r"matches 'x\*' \(an input\)"):
        fetched(1000, "x*")
    names, texts, said = fetched(10, "train.jsonl", "extra/*", download=True)
    assert names == ["train.jsonl", "extra/labels.csv"]
    assert texts[1] == "user,label\nu1,rum\n"
    assert said == ["fetching 2 files of the hub's people/notes", f"  {size} bytes"]
    again = (names, texts, [])
    assert fetched(10, "train.jsonl", "extra/*") == again
    hub.asked.clear()
    assert fetched(10, "train.jsonl", "extra/*", HF_HUB_OFFLINE="1") == again
    assert hub.asked == []

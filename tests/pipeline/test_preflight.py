import asyncio
import shutil
import threading
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from harness.base.errors import DataError, UsageError
from harness.calls import store as mounts
from harness.calls.client import Client
from harness.contracts.finding import NotReady, bad, doubtful, good
from harness.contracts.identity import Identity
from harness.contracts.model import CallError, Model, Reply, Usage
from harness.pipeline.desk import Binding
from harness.pipeline.preflight import (
    PATIENCE,
    Player,
    findings_about,
    folder,
    look,
    looks,
    models_of,
    preflight,
    shows_thinking,
)
from harness.pipeline.settings import RunSettings

OPTION = "--output_path DIR"
ANSWERS = "it answers a small question"


async def test_findings_come_in_the_order_of_the_looks():
    first_may_go_on = threading.Event()

    def slow():
        assert first_may_go_on.wait(5), "the second look waits for the first"
        yield good("first", "slow")

    def quick():
        first_may_go_on.set()
        yield good("second", "quick")
        yield doubtful("second", "and more")

    found = await looks(look("first", slow), look("second", quick))
    assert [one.says for one in found] == ["slow", "quick", "and more"]


NO_COLUMN = DataError("no column", where="a.csv", found="b, c", expected="a", hint="add it")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (NO_COLUMN, bad("x", "a.csv: no column; found b, c; expected a", "add it")),
        (ZeroDivisionError("by 0"), bad("x", "the look failed: ZeroDivisionError: by 0")),
    ],
)
async def test_an_error_is_a_finding_with_all_that_it_says(error, expected):
    async def find():
        raise error

    assert await look("x", find) == [expected]


@pytest.mark.parametrize("where", ["thread", "loop"])
async def test_a_look_that_takes_too_long_is_left(where):
    never = threading.Event()

    def in_a_thread():
        never.wait(60)
        yield good("x", "late")

    async def on_the_loop():
        await asyncio.sleep(60)
        return [good("x", "late")]

    find = in_a_thread if where == "thread" else on_the_loop
    (found,) = await look("x", find, seconds=0.05)
    never.set()
    assert found == doubtful("x", "not known after 0.05 s")


async def test_keys_are_in_no_finding(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "very-secret-value")

    def find():
        yield bad("x", "the server said very-secret-value", "forget very-secret-value")

    (found,) = await look("x", find)
    assert found == bad("x", "the server said [redacted]", "forget [redacted]")


class Asked(Model):
    """A model that finds these things, and gives this reply or raises this error."""

    def __init__(self, *found, reply=None, occupies=None, needs=None, name="m"):
        self.identity = Identity(kind="fake", name=name)
        self.occupies = occupies
        self.found, self.reply, self.needs = found, reply or Reply(text="yes"), needs
        self.asked = 0

    def require(self):
        if self.needs:
            raise self.needs

    async def check(self):
        return self.found

    async def ask(self, request):
        self.asked += 1
        if isinstance(self.reply, CallError):
            raise self.reply
        return self.reply


def player(model, role="judge", source="from --judge"):
    return Player(source=source, binding=Binding(role=role, label="fake:m", model=model))


async def test_a_model_that_is_certain_is_not_asked():
    model = Asked(good("key", "is set"), good("server", "lists it"))
    assert await findings_about([player(model)]) == [
        good("judge", "fake:m, from --judge: is set; lists it")
    ]
    assert await findings_about([player(Asked())]) == [
        good("judge", "fake:m, from --judge: can be used")
    ]
    broken = Asked(good("key", "is set"), bad("server", "is gone", "start it"))
    assert await findings_about([player(broken)], ask=True) == [
        bad("judge", "fake:m, from --judge: is gone", "start it")
    ]
    assert (model.asked, broken.asked) == (0, 0)
    assert await findings_about([player(model)], ask=True) == [
        good("judge", f"fake:m, from --judge: is set; lists it; {ANSWERS}")
    ]


NAME = "fake:m, from --judge"
WRONG_KEY = CallError("auth", "HTTP 401", fatal=True)
DOWN = CallError("connection", "refused", retryable=True)
BUSY = CallError("server_error", "HTTP 503", retryable=True)
ODD = CallError("bad_request", "HTTP 400: no temperature")
THINKS = CallError("no_content", "reasoning only", retryable=True)
CHECK_KEY = "check the API key that the model uses"
START = "start the server, or check the address that the model uses"
FAILED = "no list; a small question failed"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (None, [good("judge", f"{NAME}: no list; {ANSWERS}")]),
        (THINKS, [good("judge", f"{NAME}: no list; {ANSWERS}")]),
        (WRONG_KEY, [bad("judge", f"{NAME}: {FAILED}: auth: HTTP 401", CHECK_KEY)]),
        (DOWN, [bad("judge", f"{NAME}: {FAILED}: connection: refused", START)]),
        (BUSY, [doubtful("judge", f"{NAME}: {what}") for what in (
            "no list", "a small question failed: server_error: HTTP 503")]),
        (ODD, [doubtful("judge", f"{NAME}: {what}") for what in (
            "no list", "a small question failed: bad_request: HTTP 400: no temperature")]),
    ],
)  # fmt: skip
async def test_one_small_question_settles_a_doubt(reply, expected):
    model = Asked(doubtful("server", "no list"), reply=reply)
    assert await findings_about([player(model)]) == expected
    assert model.asked == 1


async def test_an_engine_is_not_started_and_without_servers_only_keys_and_engines_are_looked_at():
    idle = Asked(doubtful("gpu", "unknown"), occupies="gpu")
    await findings_about([player(idle)], ask=True)
    assert idle.asked == 0
    keyless = Asked(bad("server", "asked"), needs=UsageError("no key", hint="export it"))
    engine = Asked(bad("gpu", "none"), occupies="gpu")
    players = player(keyless), player(engine, "candidate", "from --model")
    assert await findings_about(players, local=True) == [
        bad("judge", f"{NAME}: no key", "export it"),
        bad("candidate", "fake:m, from --model: none"),
    ]


async def test_one_look_for_all_roles_of_a_model():
    model = Asked(bad("server", "is gone"))
    tasks = "the default of a", "the default of b"
    same = [player(model, role, source) for role in ("profiler", "judge") for source in tasks]
    assert await findings_about(same) == [
        bad("judge and profiler", "fake:m, the default of a, the default of b: is gone")
    ]
    (found,) = await findings_about([*same, player(model, "candidate", "from --model")])
    assert found.about == "candidate and 2 other roles"


async def test_weights_that_do_not_fit_come_first_with_other_ways_for_a_judge():
    model = Asked(
        bad("gpu", "too few"), bad("weights", "141.1 GB do not fit", "use more"), occupies="gpu"
    )
    first, second = await findings_about([player(model, source="the default of t")])
    assert (first.says, second.says) == (
        "fake:m, the default of t: 141.1 GB do not fit", "fake:m, the default of t: too few",
    )  # fmt: skip
    assert first.to_do == (
        "name a smaller model, --judge fake:model=…, or a server, "
        "--judge openai:base_url=…,model=…; or use more"
    )
    first, _ = await findings_about([player(model, "profiler")])
    assert "--role profiler=openai:base_url=…,model=…" in first.to_do
    first, _ = await findings_about([player(model, "candidate")])
    assert first.to_do == "use more"


@pytest.mark.parametrize(
    "reply", [CallError("not_found", "no model m", fatal=True), Reply(text="yes")]
)
async def test_a_default_that_the_server_does_not_list_comes_with_the_way_to_name_another(reply):
    unknown = doubtful("name", "lists 1 model, but not 'm'", "correct the model's name")
    model = Asked(unknown, reply=reply)
    mine = player(model, source="from --judge")
    assert {one.to_do for one in await findings_about([mine])} >= {"correct the model's name"}
    default = await findings_about([player(model, source="the default of t")])
    (to_do,) = {one.to_do for one in default} - {None}
    assert to_do == (
        "name a model and its server, --judge openai:base_url=…,model=…; "
        "--judge lexical judges by word overlap, for a trial"
    )
    default = await findings_about([player(model, "profiler", "the default of t")])
    (to_do,) = {one.to_do for one in default} - {None}
    assert to_do == "name a model and its server, --role profiler=openai:base_url=…,model=…"


def client():
    return Client(store=None, run_id="r", patience=PATIENCE)


async def looked(shown, *players, asks=True, **options):
    """What `preflight` returns about these players, where it shows and asks."""
    return await preflight(
        models_of(players), RunSettings(tasks=(), model="m", use_store=False), show=shown.append,
        client=client() if asks else None, **options,
    )  # fmt: skip


async def test_doubts_are_shown_and_all_that_prevents_the_run_is_one_error():
    gone = Asked(bad("server", "no server", "start it"))
    keyless = Asked(bad("key", "no key"))
    doubted = Asked(doubtful("server", "hm", "look there"))
    players = player(doubted), player(gone, "candidate", "a"), player(keyless, "namer", "b")
    shown = []
    with pytest.raises(NotReady) as caught:
        await looked(shown, *players, to_ask=dict.fromkeys([doubted, gone, keyless]))
    assert shown == [f"judge: {NAME}: hm; look there"]
    assert str(caught.value) == (
        "this run cannot start here\n"
        "  ✗ candidate: fake:m, a: no server\n"
        "    to do: start it\n"
        "  ✗ namer: fake:m, b: no key"
    )
    assert caught.value.exit_code == 1
    assert [model.asked for model in (doubted, gone, keyless)] == [0, 0, 0], "nothing is asked"


async def test_the_question_of_thinking_is_the_one_that_settles_doubts():
    thinker = Asked(doubtful("server", "no list"), reply=Reply(text="<think>hm</think>391"))
    listed = Asked(good("server", "lists it"), name="n")
    shown = []
    thinks = {thinker: None}
    await looked(shown, player(thinker), player(listed, "candidate"), to_ask=thinks)
    assert (thinks, thinker.asked, listed.asked) == ({thinker: True}, 1, 0)
    assert shown == []


async def test_what_one_model_answered_is_known_though_another_prevents_the_run():
    thinker = Asked(reply=Reply(text="<think>hm</think>391"))
    broken = Asked(reply=WRONG_KEY, name="n")
    thinks = {thinker: None, broken: None}
    with pytest.raises(NotReady):
        await looked([], player(thinker), player(broken), to_ask=thinks)
    assert thinks == {thinker: True, broken: None}


async def test_a_problem_known_before_comes_first_and_nothing_is_asked():
    known = [bad("data", "no data", "fetch it")]
    gone, doubted = Asked(bad("server", "gone")), Asked(doubtful("server", "hm"))
    with pytest.raises(NotReady) as caught:
        await looked([], player(gone), player(doubted, "candidate"), asks=False, known=known)
    assert [one.says for one in caught.value.findings] == ["no data", f"{NAME}: gone"]
    assert doubted.asked == 0
    with pytest.raises(NotReady, match=r"^data: no data\n  to do:    fetch it$"):
        await looked([], player(doubted), asks=False, known=known)


ANOTHER = "--output_path DIR names another folder"
FREE = f"free some space, or {ANOTHER}"


@pytest.mark.parametrize(
    ("gib", "kind", "told"),
    [
        (12.34, "ext4", good("runs", "PATH; 12.3 GiB free")),
        (100, "nfs4", good("runs", "PATH; 100.0 GiB free; on nfs4, over the network")),
        (0.5, "ext4", doubtful("runs", "PATH; 0.5 GiB free", FREE)),
        (0.04, "ext4", doubtful("runs", "PATH; 0.0 GiB free", FREE)),
        (0, "ext4", bad("runs", "PATH; 0.0 GiB free", FREE)),
    ],
)
def test_a_folder_that_will_be_made_is_told_with_its_space(monkeypatch, tmp_path, gib, kind, told):
    free = int(gib * 1024**3)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    table = tmp_path / "mountinfo"
    table.write_text(f"36 35 0:39 / {tmp_path.resolve()} rw - {kind} server:/export rw\n")
    monkeypatch.setattr(mounts, "MOUNT_TABLE", table)
    path = tmp_path / "a" / "b"
    (found,) = folder("runs", path, option=OPTION)
    assert replace(found, says=found.says.replace(str(path), "PATH")) == told
    assert list(tmp_path.iterdir()) == [table], "a look leaves nothing behind"


def test_a_folder_that_cannot_be_made_or_written(monkeypatch, tmp_path):
    (tmp_path / "runs").write_text("")
    path = tmp_path / "runs" / "mine"
    (found,) = folder("runs", path, option=OPTION)
    assert found == bad("runs", f"{path}: {tmp_path / 'runs'} is not a folder", ANOTHER)

    def refused(dir):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refused)
    (found,) = folder("runs", tmp_path, option=OPTION)
    assert found == bad("runs", f"{tmp_path} cannot be written: Permission denied", ANOTHER)


@pytest.mark.parametrize(
    ("reply", "thinks"),
    [
        (Reply(text="391"), False),
        (Reply(text="<think>\n17 times 23\n</think>\n\n391"), True),
        (Reply(text="17 times 23\n</think>\n\n391"), True),
        (Reply(text="391", reasoning="17 times 23"), True),
        (
            Reply(
                text="391", usage=Usage(prompt_tokens=9, completion_tokens=80, reasoning_tokens=77)
            ),
            True,
        ),
        (Reply(text="", finish="length"), True),
        (Reply(text="Okay, so the user wants 17 times 23. Wait", finish="length"), True),
    ],
)
def test_a_number_is_no_thinking_and_a_reply_that_was_cut_is(reply, thinks):
    assert shows_thinking(reply) is thinks

"""Keys are the same in every process, on every machine and in every version to come.

A key that changes asks models again for everything that was ever stored. The hexadecimal values
were worked out from the JSON texts beside them with `hashlib` alone:
`hashlib.blake2b(text.encode(), digest_size=16).hexdigest()`.
"""

import json
from types import SimpleNamespace

import msgspec
import pytest
from builders.processes import run_python

from harness import Benchmark, Identity, Item, Message, Request, Sampling, Stage
from harness.base.hashing import canonical, digest, digest_bytes, stable_int, struct_texts
from harness.calls.client import call_key
from harness.contracts.task import DataSpec, Task
from harness.pipeline import preparation
from harness.pipeline.desk import Binding
from harness.pipeline.item_queue import record_key
from harness.pipeline.preparation import PreparedTask
from harness.pipeline.settings import RunSettings

GOLDEN = [
    ({}, "{}", "2afb9b83f9314e5d029766197f539792"),
    (1e-05, "1e-05", "199a9e4826e89007c316e699203847e9"),
    (1e16, "1e+16", "7323ac6244733ec72d6c6825f7060f95"),
    (10**16, "10000000000000000", "e137993999f631f793b423bb22cd5952"),
    ("1e-05", '"1e-05"', "5e17260b85f90e234244bbcbe87b834a"),
    (
        {
            "h": -0.0, "g": [True, False], "f": None, "e": "café", "d": 0.1,
            "c": 10**16, "b": 1e16, "a": 1e-05,
        },
        '{"a":1e-05,"b":1e+16,"c":10000000000000000,"d":0.1,"e":"caf\\u00e9","f":null,'
        '"g":[true,false],"h":-0.0}',
        "b8a9d3e8e997669b949caaf07cfcb9e9",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("value", "text", "key"), GOLDEN)
def test_a_value_has_one_text_and_one_key(value, text, key):
    assert canonical(value).decode("ascii") == text
    assert digest(value) == digest_bytes(text.encode("ascii")) == key


def test_numbers_drawn_from_parts_stay_what_they_are():
    assert stable_int(7, "user-1") == 16524496152110029868
    assert stable_int("71", "user-") == 16709994793025396106
    assert stable_int("\ud800") == 4758185216457903464


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [float("-inf")]}])
def test_what_json_has_no_number_for_has_no_key(value):
    with pytest.raises(ValueError, match="Out of range float"):
        digest(value)


CALL = (
    r'{"fresh":"salt","messages":[["system","Be brief."],["user","caf\u00e9?"]],"model":{"details":'
    r'{"revision":"r1"},"kind":"openai","name":"m"},"repeat":2,"sampling":{"max_tokens":16,"stop":'
    r'["\n"],"temperature":1e-05,"top_p":0.9},"schema":{"maximum":1e+16},"seed":7}'
)


def test_the_key_of_a_call():
    request = Request(
        messages=(Message("system", "Be brief."), Message("user", "café?")),
        sampling=Sampling(temperature=1e-05, max_tokens=16, top_p=0.9, stop=("\n",)),
        seed=7,
        schema={"maximum": 1e16},
    )
    identity = Identity(kind="openai", name="m", details={"revision": "r1"})
    key = call_key(identity, request, repeat=2, run_id="run-1", fresh="salt")
    assert key == digest_bytes(CALL.encode()) == "88207160f7a2c0dc197afe7d99223ff2"


STAGE = (
    '{"benchmark":"b","fresh":null,"ladder":1,"options":{"big":1e+16,"small":1e-05},"prompts":'
    '{"ask.candidate":"feed"},"roles":{"candidate":{"model":{"details":{},"kind":"openai","name":'
    '"m","run":"run-1"},"sampling":{"max_tokens":1024,"stop":[],"temperature":0.0,"top_p":null}}},'
    '"seed":7,"stage":"ask","structured":false,"version":3}'
)


class Options(msgspec.Struct, frozen=True):
    small: float = 1e-05
    big: float = 1e16
    unread: int = 1


def test_the_key_of_a_stage(monkeypatch):
    monkeypatch.setattr(preparation, "LADDER_VERSION", 1)
    stage = Stage(
        name="ask", item=Item, value=str, items=None, work=None, version=3,
        roles=("candidate",), options=("small", "big"),
    )  # fmt: skip
    benchmark = Benchmark(
        name="b", version=9, stages=(stage,), load=None, score=None, metrics={}, options=Options
    )
    model = SimpleNamespace(identity=Identity(kind="openai", name="m", scope="run"))
    [made] = PreparedTask(
        stages=(stage,),
        task=Task(
            name="t", version=4, benchmark="b", data=DataSpec(tables={}), metrics=(), tags=("x",)
        ),
        benchmark=benchmark,
        options=Options(),
        bindings={"candidate": Binding(role="candidate", label="openai:m", model=model)},
        templates=SimpleNamespace(get=lambda *_: SimpleNamespace(digest="feed")),
        settings=RunSettings(tasks=(), model="", seed=7),
    ).contexts("run-1")
    assert made.key == digest_bytes(STAGE.encode()) == "b6d62e63ec73fdee78e599c77f5d708a"


def test_the_key_of_a_record():
    text = "0" * 32 + '{"id":"a","user":"u"}'
    key = record_key("0" * 32, struct_texts(Item(id="a", user="u"))[1])
    assert key == digest_bytes(text.encode()) == "c4255955d6e23694179f0f92abb37b4b"


PRINT_KEYS = """
import json, sys
from harness.base.hashing import digest, stable_int
values = json.loads(sys.argv[1])
print(json.dumps([[digest(v) for v in values], stable_int(7, "user-1"), hash("a")]))
"""


def test_keys_do_not_depend_on_the_seed_of_python_s_own_hashes():
    values = json.dumps([value for value, _, _ in GOLDEN])
    first, second = (
        json.loads(run_python(PRINT_KEYS, values, PYTHONHASHSEED=seed)) for seed in ("1", "2")
    )
    assert first[2] != second[2], "the two processes hash alike, so this test would prove nothing"
    assert first[:2] == second[:2] == [[key for _, _, key in GOLDEN], 16524496152110029868]

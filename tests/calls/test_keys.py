import pytest
from msgspec.structs import replace

from harness.base.hashing import digest
from harness.calls.client import LARGEST_SEED, call_key, call_seed
from harness.contracts.identity import Identity
from harness.contracts.model import Message, Request, Sampling, Topic

IDENTITY = Identity(kind="openai", name="m", details={"revision": "a"})
REQUEST = Request(
    messages=(Message(role="system", content="be brief"), Message(role="user", content="hï")),
    sampling=Sampling(temperature=1e-05, max_tokens=8, stop=("\n",)),
    seed=3,
)


def key(request: Request = REQUEST, identity: Identity = IDENTITY, **other: object) -> str:
    return call_key(identity, request, **{"repeat": 0, "run_id": "r1", **other})


def test_the_key_is_the_hash_of_all_that_decides_the_answer():
    assert key(fresh="salt", repeat=2) == digest(
        {
            "model": {"kind": "openai", "name": "m", "details": {"revision": "a"}},
            "messages": [["system", "be brief"], ["user", "hï"]],
            "sampling": {"temperature": 1e-05, "max_tokens": 8, "top_p": None, "stop": ["\n"]},
            "seed": 3,
            "repeat": 2,
            "schema": None,
            "fresh": "salt",
        }
    )


@pytest.mark.parametrize(
    "other",
    [
        {"request": replace(REQUEST, seed=4)},
        {"request": replace(REQUEST, schema={"type": "array"})},
        {"request": replace(REQUEST, messages=REQUEST.messages[:1])},
        {"request": replace(REQUEST, sampling=Sampling(max_tokens=8))},
        *(
            {"request": replace(REQUEST, sampling=replace(REQUEST.sampling, **{name: value}))}
            for name, value in (("reasoning_tokens", 9), ("top_k", 0), ("presence_penalty", 0))
        ),
        {"identity": replace(IDENTITY, details={"revision": "b"})},
        {"repeat": 1},
        {"fresh": "x"},
    ],
)
def test_every_part_makes_another_key(other):
    assert key(**other) != key()


def test_the_run_is_part_of_it_only_for_models_that_stay_in_the_run():
    bound = replace(IDENTITY, scope="run")
    assert key(run_id="r2") == key(run_id="r1")
    assert key(identity=bound, run_id="r2") != key(identity=bound, run_id="r1")


def test_what_a_request_is_about_is_no_part_of_it():
    topic = Topic(benchmark="b", stage="s", role="r", prompt="p", variables={"x": 1})
    assert key(replace(REQUEST, topic=topic)) == key()


def test_each_repeat_is_drawn_with_a_seed_of_its_own_that_fits_32_bits():
    seeds = [call_seed(0, repeat) for repeat in range(100)]
    assert len(set(seeds)) == 100
    assert all(0 <= seed <= LARGEST_SEED for seed in seeds)
    assert call_seed(0, 7) == seeds[7]
    assert call_seed(1, 7) != seeds[7]

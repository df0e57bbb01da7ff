"""The server of the tests, asked over plain sockets and the standard library."""

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.testing import FaultyServer
from harness.testing.faults import Asked, first, once_each, share, slow, status, where


def post(server: FaultyServer, text: str = "hello there", timeout: float = 5.0) -> dict:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()
    request = urllib.request.Request(server.url + "/chat/completions", data=body)
    with urllib.request.urlopen(request, timeout=timeout) as response:
        return json.load(response)


def code_of(server: FaultyServer, text: str = "x") -> int:
    try:
        post(server, text)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    return 200


def test_it_answers_as_openai_does():
    with FaultyServer(lambda body: body["messages"][0]["content"].upper()) as server:
        assert post(server) == {
            "id": "chatcmpl-0",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": "HELLO THERE"},
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 2, "completion_tokens": 2, "total_tokens": 4},
        }


def asked(number: int = 0, again: int = 0, text: str = "x") -> Asked:
    body = {"messages": [{"role": "user", "content": text}]}
    return Asked(number=number, again=again, digest="d", body=body, headers={}, at=0.0)


def test_rules():
    fault = status(500)
    assert [first(1, fault)(asked(number)) for number in (0, 1)] == [fault, None]
    assert [once_each(fault)(asked(again=again)) for again in (0, 1)] == [fault, None]
    assert [where("bad", fault)(asked(text=text)) for text in ("a bad one", "x")] == [fault, None]
    rule, same = share(0.3, [fault], seed=5), share(0.3, [fault], seed=5)
    drawn = [rule(asked()) for _ in range(1000)]
    assert drawn == [same(asked()) for _ in range(1000)]
    assert 250 < sum(one is fault for one in drawn) < 350


def test_a_slow_answer_is_the_right_one():
    with FaultyServer(faults=[slow(0.2)]) as server:
        began = time.monotonic()
        assert code_of(server) == 200
        assert time.monotonic() - began >= 0.2


def test_death_closes_the_port_and_revival_opens_the_same():
    with FaultyServer() as server:
        url = server.url
        server.die()
        with pytest.raises(urllib.error.URLError, match="refused"):
            post(server)
        server.revive()
        assert (server.url, code_of(server)) == (url, 200)
        server.die(0.2)
        time.sleep(0.5)
        assert code_of(server) == 200


def test_it_tells_how_many_are_in_flight():
    with FaultyServer(latency=0.2) as server, ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda text: post(server, text), "abc"))
        assert (server.most_in_flight, server.in_flight) == (3, 0)


DOES_IT_THINK = "What is 17 times 23? Answer with the number and nothing else."


@pytest.mark.parametrize(
    ("thinks", "text"), [(False, "391"), (True, "<think>\n17 times 23\n</think>\n\n391")]
)
def test_the_question_whether_it_thinks_is_no_request_of_the_test(thinks, text):
    with FaultyServer(faults=[status(503)], thinks=thinks) as server:
        assert post(server, DOES_IT_THINK)["choices"][0]["message"]["content"] == text
        assert (server.count, server.asked_if_thinking, server.requests) == (0, 1, [])


def test_it_runs_by_itself_and_may_think_until_it_is_cut():
    for more, finish, begin in (
        (["--answer", "yes"], "stop", "yes"),
        (["--thinks"], "length", "<think>\n"),
    ):
        command = [sys.executable, "-W", "error", "-m", "harness.testing.server", *more]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            url = process.stdout.readline().strip()
            (choice,) = post(FaultyServer(port=int(url.split(":")[2].split("/")[0])))["choices"]
            process.terminate()
        assert choice["finish_reason"] == finish
        assert choice["message"]["content"].startswith(begin)
    assert choice["message"]["content"].count("hmm") == 2000

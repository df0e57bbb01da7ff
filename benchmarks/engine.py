"""One vLLM engine asked in turns by the harness and by plain loops, and then without a server."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import messages
import table
from measure import HERE, ContenderFailed, run_measured

HARNESS = "harness"
INSIDE = "in process"
BARE = {"bare aiohttp": "aiohttp", "bare openai": "openai"}
"""The plain loops, and the client that each has."""

FASTEST = "bare aiohttp"
USUAL = "bare openai"

WAVES = 32
FEWEST = 64
"""Messages for each place in flight at most, and for all: one place needs no thousand messages."""

TINY = {"dtype": "float32", "enforce_eager": "true"}
FRUGAL = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}
"""What the tiny checkpoint is served with unless it is given: little memory, nothing compiled."""

ALWAYS = {"enable_prefix_caching": "false"}
"""Every contender asks the same; what the one before it left in the cache would be a present."""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """Every message through one contender, once.

    `seconds` are those from the first question to the last answer, `cpu` those that the asking
    process computed meanwhile. `running` is how many requests the engine worked at on average, by
    its own count. Both are unknown of an engine in process, which is one with what asks it.
    """

    contender: str
    round: int
    in_flight: int
    count: int
    seconds: float
    cpu: float | None
    prompt_tokens: int
    tokens: int
    running: float | None


def add_options(add: Callable[..., Any]) -> None:
    """The options of this part; `add` is a parser's."""
    add("--vllm-python", default=os.environ.get("HARNESS_VLLM_PYTHON"), metavar="PATH",
        help="a Python with vllm; without it the part `engine` is left out")  # fmt: skip
    add("--engine-model", metavar="MODEL", help="a checkpoint; else a tiny one is made")
    add("--engine-args", nargs="+", type=pair, default=[], metavar="NAME=VALUE",
        help="more for the engine, as --model_args: preset=h100")  # fmt: skip
    add("--engine-in-flight", nargs="+", type=int, default=[1, 64, 256], metavar="N")
    add("--engine-prompts", type=int, default=1024, help="messages a turn at most")
    add("--engine-tokens", type=int, default=64, help="tokens of an answer at most")
    add("--engine-characters", type=int, default=messages.LENGTH, help="of a message")


def pair(text: str) -> tuple[str, str]:
    """Name and value of an argument."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def measure(arguments: argparse.Namespace, scratch: Path) -> list[Turn]:
    """All turns, by contender and requests in flight; none, and a word why, without a vLLM."""
    python = arguments.vllm_python
    if not python:
        print("engine is left out: no vLLM, which --vllm-python or HARNESS_VLLM_PYTHON names",
              file=sys.stderr)  # fmt: skip
        return []
    if shutil.which(python) is None:
        print(f"engine is left out: {python} is no program", file=sys.stderr)
        return []
    try:
        return list(_turns(arguments, python, scratch))
    except ContenderFailed as error:
        print(f"engine failed and is left out:\n{error}", file=sys.stderr)
        return []


def _turns(arguments: argparse.Namespace, python: str, scratch: Path) -> Iterator[Turn]:
    variables = {"PYTHONPATH": str(HERE / "plugin"), "VLLM_CACHE_ROOT": str(scratch / "vllm")}
    given = {"python": python, **ALWAYS}
    if arguments.engine_model is None:
        checkpoint = scratch / "tiny"
        maker = HERE.parent / "tests" / "engines" / "tiny_model.py"
        run_measured([python, str(maker), str(checkpoint)], log=scratch / "maker")
        given |= {"pretrained": str(checkpoint), **TINY}
        variables |= {name: os.environ.get(name, value) for name, value in FRUGAL.items()}
    else:
        given["pretrained"] = arguments.engine_model
    given |= dict(arguments.engine_args)
    courses = json.dumps(list(_courses(arguments, scratch)))
    rounds = str(arguments.rounds)
    shared = ["--courses", courses, "--rounds", rounds]
    served = _told(
        [
            sys.executable, str(HERE / "contenders" / "harness_engine.py"), *shared,
            "--model-args", json.dumps(given), "--folder", str(scratch / "turns"),
        ],
        variables, scratch / "over a server",
    )  # fmt: skip
    yield from (Turn(**turn) for turn in served["turns"])
    try:
        inside = _told(
            [python, str(HERE / "contenders" / "inside_engine.py"), *shared],
            variables, scratch / "in process", flags=served["flags"],
        )  # fmt: skip
    except ContenderFailed as error:
        print(f"the engine in process failed and is left out:\n{error}", file=sys.stderr)
        return
    for turn in inside["turns"]:
        yield Turn(contender=INSIDE, cpu=None, running=None, **turn)


def _courses(arguments: argparse.Namespace, scratch: Path) -> Iterator[dict[str, Any]]:
    for in_flight in sorted(arguments.engine_in_flight):
        count = min(arguments.engine_prompts, max(FEWEST, WAVES * in_flight))
        path = scratch / f"messages-{in_flight}.jsonl"
        data = messages.write(path, count, arguments.engine_characters)
        yield {
            "in_flight": in_flight,
            "data": str(data),
            "count": count,
            "tokens": arguments.engine_tokens,
        }


def _told(
    command: Sequence[str],
    variables: Mapping[str, str],
    folder: Path,
    *,
    flags: Sequence[str] = (),
) -> dict[str, Any]:
    """What a contender has written."""
    print(f"  engine {folder.name}", file=sys.stderr)
    folder.mkdir()
    result = folder / "result.json"
    whole = [*command, "--result", str(result), *(["--", *flags] if flags else [])]
    run_measured(whole, log=folder / "output", environment=variables)
    return json.loads(result.read_text("utf-8"))


def promises(turns: Sequence[Turn]) -> list[table.Promise]:
    """What is promised of the harness beside the plain loops, for each number in flight."""
    found = []
    for in_flight in sorted({turn.in_flight for turn in turns}):
        these = [turn for turn in turns if turn.in_flight == in_flight]
        where = f"{in_flight} in flight"
        for what, other, promised, figure in (
            (f"requests a second beside {FASTEST}", FASTEST, 0.9, _rate),
            (f"places filled beside {FASTEST}", FASTEST, 0.95, _running),
        ):
            found.append(
                table.Promise(
                    what=f"engine, {where}: {what}, times",
                    promised=promised,
                    measured=_beside(these, other, figure),
                    at_least=True,
                )
            )
        found.append(
            table.Promise(
                what=f"engine, {where}: CPU a request beside {USUAL}, times",
                promised=1.1,
                measured=_beside(these, USUAL, _cpu),
                at_least=False,
            )
        )
    return found


def _beside(turns: Sequence[Turn], other: str, figure: Callable[[Turn], float]) -> float:
    """The median, over the rounds, of the harness's figure against another's of the same round."""
    both = [turn for turn in turns if turn.contender in (HARNESS, other)]
    by_round = {(turn.contender, turn.round): figure(turn) for turn in both}
    numbers = {turn.round for turn in both}
    return statistics.median(
        by_round[HARNESS, number] / by_round[other, number] for number in numbers
    )


def _rate(turn: Turn) -> float:
    return turn.count / turn.seconds


def _running(turn: Turn) -> float:
    assert turn.running is not None
    return turn.running


def _cpu(turn: Turn) -> float:
    assert turn.cpu is not None
    return turn.cpu / turn.count


def render(turns: Sequence[Turn]) -> str:
    """The medians of each contender and number in flight as text."""
    titles = (
        "engine", "in flight", "n", "seconds", "requests/s", "tokens a request", "tokens/s",
        "places filled", "CPU ms a request",
    )  # fmt: skip
    groups: dict[tuple[int, str], list[Turn]] = {}
    for turn in turns:
        groups.setdefault((turn.in_flight, turn.contender), []).append(turn)
    rows = []
    for (in_flight, contender), these in sorted(groups.items(), key=lambda one: one[0][0]):
        median = statistics.median
        first = these[0]
        told = first.running is not None
        rows.append(
            (
                contender,
                f"{in_flight}",
                f"{first.count}",
                f"{median(turn.seconds for turn in these):.2f}",
                f"{median(_rate(turn) for turn in these):.1f}",
                f"{median(turn.prompt_tokens / turn.count for turn in these):.0f}"
                f" + {median(turn.tokens / turn.count for turn in these):.0f}",
                f"{median(turn.tokens / turn.seconds for turn in these):.0f}",
                f"{median(_running(turn) for turn in these) / in_flight:.0%}" if told else "",
                f"{1000 * median(_cpu(turn) for turn in these):.2f}" if told else "",
            )
        )
    return table.columns(titles, rows)

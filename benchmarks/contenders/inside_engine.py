"""The same messages through an engine in this process, without a server: run by vLLM's Python.

After `--` stand the flags of the server. Those that only a server knows are passed over, but for
its chat template.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vllm import SamplingParams
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.sampling_params import RequestOutputKind
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm.v1.engine.async_llm import AsyncLLM


def read_flags(flags: Sequence[str]) -> tuple[AsyncEngineArgs, dict[str, Any]]:
    """The engine's arguments, and those of the chat template."""
    parser = AsyncEngineArgs.add_cli_args(FlexibleArgumentParser())
    parser.add_argument("--chat-template")
    parser.add_argument("--default-chat-template-kwargs", type=json.loads, default={})
    known, _ = parser.parse_known_args(list(flags))
    template = dict(known.default_chat_template_kwargs)
    if known.chat_template is not None:
        template["chat_template"] = Path(known.chat_template).read_text("utf-8")
    return AsyncEngineArgs.from_cli_args(known), template


def texts(data: str) -> list[str]:
    """The messages, read before anything is asked."""
    with Path(data).open(encoding="utf-8") as file:
        return [json.loads(line)["text"] for line in file]


class Inside:
    """An engine, and all that it takes to ask it a text."""

    def __init__(self, flags: Sequence[str]) -> None:
        given, self.template = read_flags(flags)
        self.engine = AsyncLLM.from_engine_args(given)
        self.tokenizer = self.engine.get_tokenizer()
        self.asked = 0

    async def ask(self, text: str, tokens: int) -> tuple[int, int]:
        """How many tokens the question and its answer have."""
        self.asked += 1
        prompt = self.tokenizer.apply_chat_template(
            [{"role": "user", "content": text}],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=False,
            **self.template,
        )
        sampling = SamplingParams(
            temperature=0.0, max_tokens=tokens, output_kind=RequestOutputKind.FINAL_ONLY
        )
        given = {"prompt_token_ids": prompt}
        async for output in self.engine.generate(given, sampling, f"r{self.asked}"):
            last = output
        assert last.finished
        return len(prompt), len(last.outputs[0].token_ids)

    async def turn(self, course: dict[str, Any]) -> dict[str, Any]:
        """One turn: every message once, so many at a time."""
        waiting = iter(texts(course["data"]))
        lengths: list[tuple[int, int]] = []

        async def work() -> None:
            for text in waiting:
                lengths.append(await self.ask(text, course["tokens"]))

        began = time.monotonic()
        await asyncio.gather(*(work() for _ in range(course["in_flight"])))
        seconds = time.monotonic() - began
        assert len(lengths) == course["count"], len(lengths)
        return {
            "in_flight": course["in_flight"],
            "count": len(lengths),
            "seconds": seconds,
            "prompt_tokens": sum(prompt for prompt, _ in lengths),
            "tokens": sum(answer for _, answer in lengths),
        }


async def take_turns(flags: Sequence[str], courses: Any, rounds: int) -> dict[str, Any]:
    """Every turn of every round, after one that does not count."""
    inside = Inside(flags)
    try:
        await inside.turn(courses[-1])
        turns = []
        for number in range(1, rounds + 1):
            for course in courses:
                turn = await inside.turn(course)
                turns.append({"round": number, **turn})
    finally:
        inside.engine.shutdown()
    return {"turns": turns}


def main() -> None:
    """Takes the turns and writes what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--courses", required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--result", type=Path, required=True)
    parser.add_argument("flags", nargs="*")
    arguments = parser.parse_args()
    courses = json.loads(arguments.courses)
    found = asyncio.run(take_turns(arguments.flags, courses, arguments.rounds))
    arguments.result.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()

"""A model that answers by rule from the text of the prompt, as a server would."""

from __future__ import annotations

import json
import re

from acme_borrowed.records import words
from harness import CallError, Identity, Model, ModelSettings, Reply, Request, Usage
from harness.base.errors import UsageError


class Clerk(Model):
    def __init__(self, settings: ModelSettings) -> None:
        if not settings.args.get("shelves"):
            raise UsageError("the clerk knows no shelf", expected="shelves=WORD,WORD")
        self._shelves = settings.args["shelves"].split(",")
        name = settings.args.get("model", "clerk")
        self.identity = Identity(
            kind="acme-clerk", name=name, details={"shelves": self._shelves, "rules": 1}
        )
        self.concurrency = settings.concurrency or 4
        self._open = False

    async def open(self) -> None:
        self._open = True

    async def close(self) -> None:
        self._open = False

    async def ask(self, request: Request) -> Reply:
        text = request.messages[-1].content
        lines = re.findall(r"^(\d+)\. (.+)$", text, re.MULTILINE)
        if not self._open:
            raise CallError("bad_request", "the clerk is not there", fatal=True)
        if theme := re.search(r"^Theme: (.+)$", text, re.MULTILINE):
            fitting = [label for label, title in lines if theme[1].casefold() in words(title)]
            answer = ", ".join(fitting) or "NONE"
        elif offer := re.search(r"^A: (.+)$", text, re.MULTILINE):
            tastes = re.findall(r"^- (.+)$", text, re.MULTILINE)
            answer = "A" if set(tastes).intersection(words(offer[1])) else "B"
        else:
            found = {
                shelf: [int(number) for number, title in lines if shelf in words(title)]
                for shelf in self._shelves
            }
            named = [{"taste": shelf, "books": books} for shelf, books in found.items() if books]
            answer = f"Here you are:\n```json\n{json.dumps(named)}\n```"
        usage = Usage(prompt_tokens=len(words(text)), completion_tokens=len(words(answer)))
        return Reply(text=answer, finish="stop", usage=usage)

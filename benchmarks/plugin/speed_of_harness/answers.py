"""What a model that costs nothing answers to the prompts of GISTBench, by their wording alone."""

from __future__ import annotations

import json
import re

CITED = 5
WINDOW = 100
NAMES_A_USER = 40
POSITIVE = re.compile(r"^\[(\d+)\] \((explicit|implicit) positive\) Clip (\d+) ", re.M)
HOW_MANY = re.compile(r"exactly (\d+) of the following")
TO_SORT = re.compile(r"^(\d+)\. ", re.M)
CATEGORY = "Trains"


def answer(prompt: str) -> str:
    """The answer to one prompt: well-formed, and such that every interest is verified."""
    if "Name the interests of this user" in prompt:
        return interests(prompt)
    if "are cited as evidence of it" in prompt:
        return "1, 2, 3, 4, 5"
    if (found := HOW_MANY.search(prompt)) is not None:
        return ", ".join(f"item_{place}" for place in range(int(found[1])))
    if "Put each of these interests" in prompt:
        return json.dumps(dict.fromkeys(TO_SORT.findall(prompt), CATEGORY))
    return "NONE"


def interests(prompt: str) -> str:
    """One interest for a window, which cites enough to be verified; 40 names a user in all."""
    lines = POSITIVE.findall(prompt)
    explicit = [line for line in lines if line[1] == "explicit"][:3]
    implicit = [line for line in lines if line[1] == "implicit"][: CITED - len(explicit)]
    line, clip = int(lines[0][0]), int(lines[0][2])
    # Lines run backwards through a user's clips: their sum tells one user from the next.
    name = f"taste {line + clip} {(line - 1) // WINDOW % NAMES_A_USER}"
    return json.dumps(
        [{"interest": name, "evidence": [int(line[0]) for line in (*explicit, *implicit)]}]
    )

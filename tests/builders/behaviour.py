"""Prompts of user behaviour prediction, and records of their answers."""

from random import Random
from typing import Any

import msgspec
from builders.records import make_records
from harness_behaviour.records import CANDIDATES, Prompt, Ranking


def a_prompt(number: int = 0, **given: Any) -> Prompt:
    """A prompt whose first candidates have falling counts, and whose second half nobody has."""
    had = [CANDIDATES // 2 - place for place in range(CANDIDATES // 2)]
    counts = tuple(had + [0] * (CANDIDATES - len(had)))
    name = f"movies/all/5/{number:04}"
    prompt = Prompt(
        id=name, user=name, setting="a", proxy="all", length=5, users=25, counts=counts,
        group=("25-34", "Male", "clerical/admin"),
        history=("Out of Sight (1998)", "Schindler's List (1993)"),
        candidates=tuple(f"Film {place}, The (19{place + 40})" for place in range(CANDIDATES)),
        popular=tuple(3 * one for one in counts), popular_in_group=tuple(2 * one for one in counts),
    )  # fmt: skip
    return msgspec.structs.replace(prompt, **given)


def random_prompts(many: int, *, seed: int = 0) -> list[Prompt]:
    """Prompts with random counts; popularity follows them roughly, and less so in the group."""
    chance = Random(seed)

    def random_prompt(number: int) -> Prompt:
        outside = chance.choice((25, 25, 25, 10))
        had = [chance.randint(1, 6) for _ in range(CANDIDATES - outside)] + [0] * outside
        chance.shuffle(had)
        return a_prompt(
            number, counts=tuple(had), users=chance.choice((3, 4, 20, 100, 101)),
            popular=tuple(11 * one + chance.randint(0, 30) for one in had),
            popular_in_group=tuple(one + chance.randint(0, 1) for one in had),
        )  # fmt: skip

    return [random_prompt(number) for number in range(many)]


def ranking(*places: int, **given: Any) -> Ranking:
    """A ranking of exact titles."""
    return Ranking(places, ("exact",) * len(places), **given)


def answered(*pairs: tuple[Prompt, Any]) -> dict[str, Any]:
    """The records of a task: prompts, each with a ranking or a failure."""
    return {"recommend": make_records(pairs, stage="recommend")}

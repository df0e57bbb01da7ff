"""Writes the bundled sample of `interests`: `python tests/samples/interests.py`.

Everybody and everything in it is invented.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import harness_interests

from harness.base.seeded_random import picked

SAMPLE = Path(harness_interests.__file__).parent / "sample" / "engagements.jsonl"
SEED = 20
PEOPLE = 40

TASTES = {
    "baking": (
        "sourdough bread", "rye bread", "winter pies", "laminated pastry", "honey cakes",
        "steamed buns", "wood-fired ovens", "pastry creams",
    ),
    "gardening": (
        "balcony gardens", "winter vegetables", "wild hedges", "tomato seedlings", "rain gardens",
        "compost heaps", "old apple trees", "herb gardens",
    ),
    "astronomy": (
        "night skies", "small telescopes", "meteor showers", "star maps", "lunar craters",
        "home-made telescopes", "double stars", "dark winter skies",
    ),
    "railways": (
        "night trains", "narrow-gauge railways", "mountain railways", "old signal boxes",
        "model trains", "steam engines", "railway bridges", "sleeper trains",
    ),
    "birds": (
        "river birds", "garden birds", "owls at night", "bird song", "migrating cranes",
        "nest boxes", "wild geese", "mountain birds",
    ),
    "photography": (
        "night photography", "street photography", "film cameras", "garden photography",
        "old lenses", "darkroom prints", "pinhole cameras", "portrait photography",
    ),
    "chess": (
        "rook endgames", "chess openings", "blitz chess", "chess clubs", "queen sacrifices",
        "correspondence chess", "pawn endgames", "chess puzzles",
    ),
    "pottery": (
        "wheel-thrown bowls", "salt glazes", "wood-fired kilns", "porcelain cups", "ash glazes",
        "clay from the river", "raku kilns", "cracked porcelain",
    ),
    "swimming": (
        "river swimming", "winter swimming", "open-water races", "breathing in crawl",
        "mountain lakes", "tidal pools", "swimming at night", "long sea swims",
    ),
    "jazz": (
        "piano trios", "late-night jam sessions", "brush drumming", "bebop solos",
        "old jazz records", "walking bass lines", "big bands", "jazz clubs",
    ),
    "weaving": (
        "hand looms", "indigo dye", "wool from hill sheep", "tapestry looms", "linen thread",
        "plant dyes", "twill patterns", "rag rugs",
    ),
    "climbing": (
        "bouldering walls", "crack climbing", "old climbing ropes", "mountain ridges",
        "finger strength", "winter climbing", "sea cliffs", "knots for climbing",
    ),
}  # fmt: skip

FRAMES = (
    "{} for beginners",
    "The quiet joy of {}",
    "Five common mistakes with {}",
    "A weekend of {}",
    "What nobody says about {}",
    "{} on a small budget",
    "Why {} took me years",
    "A short history of {}",
    "{}, explained by a stubborn teacher",
    "Learning to love {}",
)


def engagements(rng: Random) -> Iterator[tuple[str, str]]:
    """One person's titles with what they did: mostly their tastes, mostly liked, some chance."""
    tastes: list[str] = []
    while len(tastes) < 2 + (rng.random() < 0.4):
        taste = picked(rng, list(TASTES))
        if taste not in tastes:
            tastes.append(taste)
    seen: set[str] = set()
    length = 12 + int(rng.random() * 9)
    while len(seen) < length:
        own = rng.random() < 0.7
        topic = picked(rng, tastes if own else list(TASTES))
        thing = picked(rng, TASTES[topic])
        title = picked(rng, FRAMES).format(thing)
        title = title[0].upper() + title[1:]
        liked = rng.random() < (0.85 if topic in tastes else 0.15)
        if title not in seen:
            seen.add(title)
            yield title, "liked" if liked else "skipped"


def sample() -> str:
    """The whole sample as JSON lines, one engagement a line."""
    rng = Random(SEED)
    lines = [
        json.dumps({"user": f"person-{number:02}", "title": title, "action": action})
        for number in range(1, PEOPLE + 1)
        for title, action in engagements(rng)
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    SAMPLE.write_text(sample(), encoding="utf-8")

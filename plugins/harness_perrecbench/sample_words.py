"""The words of the bundled sample: titles that tell a theme, and profiles that tell tastes."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from harness.chance import drawn, picked

SCALES = (
    ("Nautical Harbour Sailor Lighthouse", "Alpine Mountain Glacier Edelweiss"),
    ("Minimal Plain Uncluttered Monochrome", "Baroque Gilded Ornate Brocade"),
    ("Retro Vintage Jukebox Bakelite", "Futuristic Robot Neon Holographic"),
    ("Pastel Candy Kitten Rainbow", "Gothic Raven Midnight Crypt"),
)
"""Opposite themes, each with its words."""

GOODS = {
    "book": (
        "Once My Our Another",
        "Mystery Romance Cookbook Memoir Saga",
        "Secrets Letters Stories",
        "Novel Anthology Collection",
    ),
    "kitchen": (
        "Brelto Kupfra Ostmill Tavina",
        "Kettle Skillet Teapot Apron Toaster",
        "Pattern Handle Trim",
        "Small Large Twin-Pack",
    ),
    "clothing": (
        "Wendel Norra Pelisse Oakhem",
        "Sweater Scarf Jacket Socks Cap",
        "Print Lining Buttons",
        "Adult Youth Unisex",
    ),
    "electronic": (
        "Voltane Quirrel Lumo Hertzig",
        "Speaker Headphones Charger Lamp Keyboard",
        "Case Finish Lights",
        "Black Silver Refurbished",
    ),
}
"""By domain: what titles begin with, kinds of things, what the second theme word is of, endings."""

FIRST_NAMES = ("Ada", "Bo", "Cleo", "Dirk", "Edda", "Finn", "Gus", "Hedi", "Ivo", "Juna")
LAST_NAMES = ("Aster", "Brandt", "Corvin", "Dahl", "Ember", "Falk", "Grimm", "Hollis", "Ilse")

OPENINGS = (
    "Shops for books and for the household alike.",
    "Writes short reviews, mostly on weekends.",
    "Buys for a family and for the shelf.",
    "Reads a lot and replaces things late.",
)
FOND = ("Cannot resist", "Is happiest with", "Keeps coming back to", "Has a weakness for")
MILD = ("Does not mind", "Now and then picks", "Is fairly fond of")
NO_TASTE = "No taste stands out."


def theme(scale: int, end: int) -> list[str]:
    """The words of one end, 1 or -1, of a scale."""
    return SCALES[scale][end < 0].split()


def title(rng: Random, scale: int, end: int) -> tuple[str, str | None]:
    """A title with two words of a theme, neither first nor last, and the author of a book."""
    domain = picked(rng, tuple(GOODS))
    start, kind, part, ending = (picked(rng, words.split()) for words in GOODS[domain])
    one, other = drawn(rng, theme(scale, end), 2)
    author = f"{picked(rng, FIRST_NAMES)} {picked(rng, LAST_NAMES)}"
    text = f"{start} {one} {kind} with {other} {part} {ending}"
    return text, author if domain == "book" else None


def profile(rng: Random, tastes: Sequence[float]) -> str:
    """Likings in prose, from how much the first end of each scale is liked."""
    sentences = []
    for scale, taste in enumerate(tastes):
        if taste:
            one, other, third = drawn(rng, theme(scale, 1 if taste > 0 else -1), 3)
            phrase = picked(rng, FOND if abs(taste) > 0.5 else MILD)
            words = f"{one.lower()}, {other.lower()} or {third.lower()}"
            sentences.append(f"{phrase} whatever says {words}.")
    return " ".join([picked(rng, OPENINGS), *(sentences or [NO_TASTE])])

"""The options of the benchmark and the typed values that pass between its parts."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from harness import Item

AtLeastOne = Annotated[int, Meta(ge=1)]

Domain: TypeAlias = Literal["movies", "music"]
Setting: TypeAlias = Literal["a", "b", "c", "none"]
"""What a prompt shows: a is demography and history, b history alone, c demography alone.

The prompt without any context, `none`, belongs to no setting; it is asked with setting c.
"""

Proxy: TypeAlias = Literal[
    "none", "age", "gender", "occupation", "all", "country", "continent", "gender_continent"
]
PROXIES: dict[Domain, tuple[Proxy, ...]] = {
    "movies": ("none", "age", "gender", "occupation", "all"),
    "music": ("none", "country", "continent", "gender", "gender_continent"),
}
LENGTHS = (0, 1, 3, 5, 10, 20)
"""How many items the history of a prompt has."""

CANDIDATES = 50
RANKED = 10
"""How many candidates a prompt has, and how many of them are ranked."""


class Recipe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What decides the prompts of a domain, together with its files."""

    domain: Annotated[Domain, Meta(description="what is recommended")] = "movies"
    seed: Annotated[int, Meta(description="the seed of the prompts")] = 0
    tries: Annotated[AtLeastOne, Meta(description="draws of a history in each cell at most")] = (
        20_000
    )
    kept: Annotated[AtLeastOne, Meta(description="prompts that a cell has at most")] = 300
    table1: Annotated[
        bool, Meta(description="end each cell at the number of prompts in the paper's Table 1")
    ] = True
    draws: Annotated[
        Literal["uniform", "popularity"],
        Meta(description="histories of items by chance, or by chance weighted with popularity"),
    ] = "uniform"
    min_users_per_country: Annotated[
        AtLeastOne, Meta(description="users that a country has at least to be a group")
    ] = 9
    min_interactions: Annotated[
        AtLeastOne, Meta(description="interactions that a user of music has at least")
    ] = 5_000
    music_item: Annotated[
        Literal["track", "artist"], Meta(description="what an item of music is")
    ] = "track"


class Options(Recipe, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a task file; the plugin's README explains more."""

    setting: Annotated[
        Literal["a", "b", "c"],
        Meta(description="what prompts show: a demography and history, b history, c demography"),
    ] = "a"
    similarity: Annotated[
        Annotated[float, Meta(gt=0, le=1)],
        Meta(description="how like a candidate an unknown title is at least to be read as it"),
    ] = 0.85
    fills: Annotated[
        AtLeastOne,
        Meta(description="random rankings that fill short ones and are the band of `random`"),
    ] = 20
    window: Annotated[
        Literal["centred", "trailing"], Meta(description="the moving mean behind the curve")
    ] = "centred"


class Asked(Item, frozen=True, kw_only=True):
    """What scores need to know of a prompt.

    `users` is the number of users behind it. `counts`, `popular` and `popular_in_group` say of each
    candidate how many users have it: among those behind the prompt, whose shares are the true
    probabilities, among all, and among those of the group.
    """

    setting: Setting
    proxy: Proxy
    length: int
    users: int
    counts: tuple[int, ...]
    popular: tuple[int, ...]
    popular_in_group: tuple[int, ...]


class Prompt(Asked, frozen=True, kw_only=True):
    """Item of the stage "recommend": one prompt, with what is true of its candidates.

    `group` are the values of the demography, as prompts say them and in the order of `all`.
    """

    group: tuple[str, ...]
    history: tuple[str, ...]
    candidates: tuple[str, ...]


class Ranking(msgspec.Struct, frozen=True):
    """The ranked candidates as their places in the prompt, the likeliest first; at most ten.

    `matched` says of each how its title was found. `unknown` and `repeated` are the titles that
    were dropped before the ranking was full, and `surplus` those after it.
    """

    places: tuple[int, ...]
    matched: tuple[Literal["exact", "folded", "closest"], ...]
    unknown: int = 0
    repeated: int = 0
    surplus: int = 0


class Fit(msgspec.Struct, frozen=True):
    """Details of a score: how a ranking fits the true distribution of its prompt.

    `entropy` is the true one. `cross` and `cross_1e3` are the cross-entropies at the two epsilons,
    and `displaced` is the true mass that the estimate rules out; they are None where no ranking
    could be read, and so is `filled`, the number of places that were filled. The rankings without
    a model have the same three; what is popular in the group is None in settings b and c, and where
    none of its other users has a candidate. `cross_draws` are the cross-entropies of several random
    rankings, of which the first is that of `cross_random`.
    """

    setting: Setting
    proxy: Proxy
    length: int
    users: int
    entropy: float
    cross_draws: tuple[float, ...]
    cross: float | None = None
    cross_1e3: float | None = None
    displaced: float | None = None
    filled: int | None = None
    cross_random: float = 0.0
    cross_1e3_random: float = 0.0
    displaced_random: float = 0.0
    cross_popular: float = 0.0
    cross_1e3_popular: float = 0.0
    displaced_popular: float = 0.0
    cross_popular_in_group: float | None = None
    cross_1e3_popular_in_group: float | None = None
    displaced_popular_in_group: float | None = None

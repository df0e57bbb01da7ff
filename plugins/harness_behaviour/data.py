"""From tables of data to the prompts of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from harness import DataError
from harness.base.errors import UsageError
from harness_behaviour.building import prompt_files
from harness_behaviour.building.prompt_files import PROMPTS, RECORD
from harness_behaviour.records import Recipe

if TYPE_CHECKING:
    from harness.contracts.dataset import Dataset
    from harness_behaviour.building.log import Log
    from harness_behaviour.building.prompt_files import Built, Record
    from harness_behaviour.records import Domain, Options, Prompt

RAW: Mapping[Domain, Mapping[str, str]] = {
    "movies": {"users": "users.dat", "ratings": "ratings.dat", "movies": "movies.dat"},
    "music": {
        "profile": "userid-profile.tsv",
        "events": "userid-timestamp-artid-artname-traid-traname.tsv",
    },
}
"""The tables with the log of each domain, and their files."""

IN_SAMPLE = {"min_interactions": 50, "kept": 100}
"""The most that these parts of a recipe are in the bundled sample, which is small."""

MUSIC_ONLY = ("min_users_per_country", "min_interactions", "music_item")
"""The parts of a recipe that decide nothing for movies."""


def load(dataset: Dataset, options: Options) -> tuple[Prompt, ...]:
    """The prompts of the task's setting, built ones or those that this run builds.

    Setting c has the prompt without any context too, whose own setting is `none`.
    """
    recipe = recipe_for(dataset, options)
    if dataset.has("prompts"):
        record: Record | Built
        record, prompts = built_prompts(dataset)
        check_recipe(record, recipe, where=str(dataset.path("prompts")))
    else:
        record = build(dataset, recipe)
        prompts = record.prompts
    for fact, number in record.notes.items():
        dataset.note(fact, number)
    settings = ("c", "none") if options.setting == "c" else (options.setting,)
    own = {one.id: one for one in prompts if one.setting in settings}
    return tuple(own[name] for name in dataset.choose(own, of="prompts"))


def built_prompts(dataset: Dataset) -> tuple[Record, tuple[Prompt, ...]]:
    """The prompts in the data, and what they were built of."""
    if not dataset.has("prompts"):
        raise DataError(
            "there are no built prompts",
            where=str(dataset.about.get("path", f"the data of task '{dataset.task}'")),
            expected=f"{PROMPTS} with {RECORD}",
            hint="`harness data behaviour-prompts --from DIR --out OUT` builds them",
        )
    if not dataset.has("built"):
        raise DataError(
            f"built prompts lack {RECORD}, which says how they were built",
            where=str(dataset.path("prompts")),
            expected=f"{PROMPTS} and {RECORD} in one folder, both of one build",
        )
    return dataset.once(("prompts", "built"), prompt_files.read, dataset.path("prompts"))


def recipe_for(dataset: Dataset, given: Recipe) -> Recipe:
    """The part of options that decides the prompts; the sample needs less and gives fewer."""
    recipe = Recipe(**{name: getattr(given, name) for name in Recipe.__struct_fields__})
    if "sample" in dataset.about:
        least = {name: min(getattr(recipe, name), most) for name, most in IN_SAMPLE.items()}
        recipe = msgspec.structs.replace(recipe, **least)
    return recipe


def build(dataset: Dataset, recipe: Recipe) -> Built:
    """The prompts of the logs in the data, built once for all tasks of a run."""
    return dataset.once(_raw(dataset, recipe), _build, dataset.database, recipe)


def read_log(dataset: Dataset, recipe: Recipe) -> Log:
    """The logs in the data."""
    return _read(*map(dataset.table, _raw(dataset, recipe)), dataset.database, recipe)


def check_recipe(record: Record, recipe: Recipe, *, where: str) -> None:
    """Raise UsageError unless prompts were built as the task's options say."""
    unlike = {
        name: value
        for name, value in msgspec.structs.asdict(recipe).items()
        if record.options.get(name) != value
        and not (recipe.domain == "movies" and name in MUSIC_ONLY)
    }
    if "domain" in unlike:
        unlike = {"domain": recipe.domain}
    if unlike:
        built = {name: record.options.get(name) for name in unlike}
        raise UsageError(
            "the prompts were built with other options than the task has",
            where=where,
            found=f"built with {_settings(built, ', ')}",
            expected=f"{_settings(unlike, ', ')}, as the task says",
            hint=f"name the tasks of this domain: behaviour_{record.domain}"
            if "domain" in unlike
            else f"build them again, or give --set {_settings(built, ' --set ')}",
        )


def _settings(options: Mapping[str, Any], between: str) -> str:
    """Options as the command line writes them."""
    return between.join(
        f"{name}={str(value).lower() if isinstance(value, bool) else value}"
        for name, value in options.items()
    )


def _raw(dataset: Dataset, recipe: Recipe) -> tuple[str, ...]:
    """The names of the tables with the logs; DataError if the data lacks one."""
    files = RAW[recipe.domain]
    lacking = [file for table, file in files.items() if not dataset.has(table)]
    if lacking:
        raise DataError(
            f"the data of {recipe.domain} lacks {' and '.join(lacking)}",
            where=str(dataset.about.get("path", f"the data of task '{dataset.task}'")),
            found=f"the tables {', '.join(dataset.tables)}" if dataset.tables else "no table",
            expected=f"{', '.join(files.values())}; or built prompts, {PROMPTS} with {RECORD}",
        )
    return tuple(files)


def _read(*given: Any) -> Log:
    """The log of the recipe's domain, from its tables, their database and the recipe."""
    from harness_behaviour import movies, music

    *tables, recipe = given
    return movies.read(*tables) if recipe.domain == "movies" else music.read(*given)


def _build(*given: Any) -> Built:
    """All prompts of the recipe's domain, from the same."""
    from harness_behaviour.building.cells import build_cells, table1

    recipe: Recipe = given[-1]
    return build_cells(_read(*given), recipe, table1(recipe.domain))

"""The tool `harness horizon sft-export`: the next items of training histories, as chat."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from harness.analysis.chat_lines import audit, chat_line, check_new, write_lines
from harness.base.errors import DataError
from harness.contracts.report import Report, Sheet
from harness_horizon.catalogue.titles import cleaned
from harness_horizon.curation.engine import engine, parquet
from harness_horizon.curation.ledger import complete_manifest
from harness_horizon.curation.settings import memory_bytes
from harness_horizon.curation.stages import ITEMS
from harness_horizon.recommenders.training_data import TRAIN, VALIDATION, data_folder
from harness_horizon.text.histories import AtLeastOne, Options, recent
from harness_horizon.text.searching import FIELDS

FILE, PROMPT = "train-next.jsonl", "one"
NOTE = (
    "Training data contains the items that it asks for and those that it shows; tests are 1a, 1b, "
    "1c, 1d and validation. Both are compared by the item's number, and by title."
)

Trace = tuple[object, ...]
"""An item in a text: user and number, or user, title and nothing more."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `harness horizon sft-export`."""

    data: Annotated[Path, Meta(description="what `harness data horizon` wrote, or sample")]
    out: Annotated[Path, Meta(description="the folder that the training data is written to")]
    per_user: Annotated[AtLeastOne, Meta(description="the last items of each user to ask for")] = 1
    history_characters: Annotated[
        AtLeastOne, Meta(description="the longest history in a prompt; the oldest titles go first")
    ] = Options().history_characters
    memory: Annotated[str, Meta(description="what the whole process may hold in memory")] = "8GB"


class Pair(msgspec.Struct, frozen=True):
    """A history with the title that followed, and all that its text has traces of."""

    history: tuple[str, ...]
    title: str
    traces: frozenset[Trace]


def run(settings: Settings) -> Report:
    """Write the training data, and report its counts and the audit against all tests."""
    from harness.pipeline.preparation import prompt_folders
    from harness.prompts import Templates
    from harness.registry import load_plugins

    place = settings.out / FILE
    check_new([place], settings.out)
    folder = data_folder(settings.data)
    split = complete_manifest(folder).digest
    pairs, tested = read_pairs(settings, folder)
    kept = [pair for pair in pairs if not pair.traces & tested]
    shared = audit(tested, {one for pair in kept for one in pair.traces}, "item", NOTE)
    if not kept:
        raise DataError("the training histories give no training data", where=str(folder),
                        found=f"{len(pairs)} items with a history",
                        expected="items without what tests ask for")  # fmt: skip
    template = Templates(prompt_folders(load_plugins())).need("horizon_text", PROMPT, "candidate")
    lines = (chat_line(template.render({"history": list(pair.history)}),
                       json.dumps({FIELDS["next"]: [pair.title]}, ensure_ascii=False))
             for pair in kept)  # fmt: skip
    counts = Sheet(title="Items of training histories", columns=("written", "contain a test item"),
                   rows=((len(kept), len(pairs) - len(kept)),),
                   notes=("All but the first count are left out.",))  # fmt: skip
    notes = (f"split {split[:12]}", write_lines({place: lines}, settings.out))
    return Report(sheets=(counts, shared), notes=notes)


def read_pairs(settings: Settings, folder: Path) -> tuple[list[Pair], set[Trace]]:
    """The pairs of all users to train on, and what tests ask of these users."""
    train, items = (parquet(folder / one) for one in (TRAIN, ITEMS))
    cases = parquet(folder / VALIDATION, *sorted(folder.glob("cases-*.parquet")))
    asked = f"""
        SELECT user_id, unnest(items[cases.first + 1:]), unnest(titles[cases.first + 1:])
        FROM {cases} AS cases SEMI JOIN {train} USING (user_id)
    """
    shown = f"""
        SELECT user_id, list(item ORDER BY spot), list(title ORDER BY spot)
        FROM (SELECT user_id, generate_subscripts(items, 1) AS spot, unnest(items) AS item
              FROM {train}) JOIN {items} USING (item) GROUP BY user_id ORDER BY user_id
    """
    with (
        tempfile.TemporaryDirectory(prefix="horizon-sft-") as spill,
        engine(Path(spill), memory_bytes(settings.memory)) as database,
    ):
        users, tests = database.rows(shown), database.rows(asked)
    tested = {one for row in tests for one in traces(*row)}
    return [pair for row in users for pair in pairs_of(settings, *row)], tested


def traces(user: str, item: int, title: str | None) -> tuple[Trace, Trace]:
    """An item of a user by its number and by its title."""
    return (user, item), (user, cleaned(title), None)


def pairs_of(settings: Settings, user: str, items: Any, titles: Any) -> Iterator[Pair]:
    """The last items of a user, each with the history before it."""
    titles = [cleaned(title) for title in titles]
    for place in range(max(1, len(titles) - settings.per_user), len(titles)):
        history = recent(titles[:place], settings.history_characters)
        shown = range(place - len(history), place + 1)
        every = frozenset(one for at in shown for one in traces(user, items[at], titles[at]))
        yield Pair(history, titles[place], every)

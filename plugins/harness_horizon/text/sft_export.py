"""The tool `harness horizon sft-export`: the next items of training histories, as chat."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from harness.analysis.chat_lines import chat_line, check_new, write_lines
from harness.base.errors import DataError
from harness.contracts.report import Report, Sheet
from harness_horizon.catalogue.titles import cleaned
from harness_horizon.curation.engine import engine, text, texts
from harness_horizon.curation.ledger import complete_manifest
from harness_horizon.curation.settings import memory_bytes
from harness_horizon.curation.stages import ITEMS, USERS
from harness_horizon.recommenders.training_data import TRAIN, VALIDATION, data_folder
from harness_horizon.text.histories import AtLeastOne, Options, recent
from harness_horizon.text.searching import FIELDS

FILE, PROMPT = "train-next.jsonl", "one"
FATES = WRITTEN, LEAKED, SHORT = "written", "contain what tests ask for", "without a history"


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
    """A history with the title that followed; `shown` and `tested` are items and titles."""

    history: tuple[str, ...]
    title: str
    shown: frozenset[int | str]
    tested: frozenset[int | str]

    @property
    def fate(self) -> str:
        """Whether it may be written, and why not."""
        return SHORT if not self.history else LEAKED if self.shown & self.tested else WRITTEN


def run(settings: Settings) -> Report:
    """Write the training data, and report its counts and the audit against all tests."""
    from harness.pipeline.preparation import prompt_folders
    from harness.prompts import Templates
    from harness.registry import load_plugins

    place = settings.out / FILE
    check_new([place], settings.out)
    folder = data_folder(settings.data)
    split = complete_manifest(folder).digest
    template = Templates(prompt_folders(load_plugins())).need("horizon_text", PROMPT, "candidate")
    pairs, held_out = read_pairs(settings, folder)
    fates = Counter(pair.fate for pair in pairs)
    kept = [pair for pair in pairs if pair.fate == WRITTEN]
    audit = audited(kept, held_out)
    if not kept:
        raise DataError(
            "the training histories give no training data",
            where=str(folder),
            found="; ".join(f"{fate}: {number}" for fate, number in fates.items()) or "no users",
            expected="items with a history, and without what tests ask for",
        )
    lines = (
        chat_line(
            template.render({"history": list(pair.history)}),
            json.dumps({FIELDS["next"]: [pair.title]}, ensure_ascii=False),
        )
        for pair in kept
    )
    note = write_lines({place: lines}, settings.out)
    row = tuple(fates[fate] for fate in FATES)
    notes = ("All but the first count are left out.",)
    counts = Sheet(title="Items of training histories", columns=FATES, rows=(row,), notes=notes)
    return Report(sheets=(counts, audit), notes=(f"split {split[:12]}", note))


def audited(pairs: list[Pair], held_out: int) -> Sheet:
    """What training data and tests share; DataError unless it is nothing."""
    shared = sum(len(pair.shown & pair.tested) for pair in pairs)
    if held_out or shared:
        raise DataError(
            "the training data contains what tests ask for, so nothing was written",
            found=f"{held_out} held-out users; {shared} items and titles",
            expected="training data without any of them",
        )
    in_tests, in_training = (sum(len(getattr(pair, name)) for pair in pairs)
                             for name in ("tested", "shown"))  # fmt: skip
    return Sheet(
        title="Audit of users and things",
        columns=("", "in tests", "in training data", "shared"),
        rows=(
            ("held-out users", None, held_out, 0),
            ("items and titles", in_tests, in_training, 0),
        ),
        notes=(
            "Training data contains the items that it asks for and those that it shows; they are "
            "compared with 1a, 1b, 1c, 1d and validation of the same user, by number and by title, "
            "line by line.",
        ),
    )


def read_pairs(settings: Settings, folder: Path) -> tuple[list[Pair], int]:
    """The pairs of all users to train on, and how many of these users are held out."""
    train, items, users = (f"read_parquet({text(folder / one)})" for one in (TRAIN, ITEMS, USERS))
    files = texts([folder / VALIDATION, *sorted(folder.glob("cases-*.parquet"))])
    tested = f"""
        SELECT user_id, flatten(list(items[cases.first + 1:])) AS asked,
            flatten(list(titles[cases.first + 1:])) AS named
        FROM read_parquet({files}) AS cases SEMI JOIN {train} USING (user_id) GROUP BY user_id
    """
    shown = f"""
        SELECT user_id, list(item ORDER BY spot) AS shown, list(title ORDER BY spot) AS titles
        FROM (SELECT user_id, generate_subscripts(items, 1) AS spot, unnest(items) AS item
              FROM {train}) JOIN {items} USING (item) GROUP BY user_id
    """
    both = f"SELECT * FROM ({shown}) LEFT JOIN ({tested}) USING (user_id) ORDER BY user_id"
    held_out = f"SELECT count(*) AS n FROM {train} JOIN {users} USING (user_id) WHERE held_out"
    with (
        tempfile.TemporaryDirectory(prefix="horizon-sft-") as spill,
        engine(Path(spill), memory_bytes(settings.memory)) as database,
    ):
        rows, found = database.rows(both), database.one(held_out)
    return [pair for row in rows for pair in _pairs(settings, *row[1:])], found["n"]


def _pairs(
    settings: Settings, items: list[int], titles: list[str], asked: list[int], named: list[str]
) -> Iterator[Pair]:
    """The last items of a user, each with the history before it."""
    titles = [cleaned(title) for title in titles]
    tested = frozenset((*(asked or ()), *map(cleaned, named or ())))
    for place in range(max(0, len(titles) - settings.per_user), len(titles)):
        history = recent(titles[:place], settings.history_characters)
        seen = items[place - len(history) : place + 1]
        yield Pair(history, titles[place], frozenset((*seen, *history, titles[place])), tested)

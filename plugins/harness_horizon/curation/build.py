"""Makes histories, splits and cases from raw files, and continues what a killed build began."""

from __future__ import annotations

import os
import shutil

from harness.analysis.analysis import Progress, no_progress
from harness.contracts.report import Report, Sheet
from harness.runs.atomic_files import remove_unfinished
from harness_horizon.curation import stages
from harness_horizon.curation.engine import engine, say_disk
from harness_horizon.curation.ledger import (
    Ledger,
    Manifest,
    alone,
    check_usable,
    opened,
    read_manifest,
)
from harness_horizon.curation.settings import Settings, memory_bytes
from harness_horizon.curation.sources import disk_needed, find, with_digests
from harness_horizon.curation.splits import LEAKS, audit, make_splits
from harness_horizon.next_item.cases import MEANING


def run(settings: Settings, progress: Progress = no_progress) -> Report:
    """Write all files to the folder, and report what each rule left."""
    memory = memory_bytes(settings.memory)
    found = find(settings.reviews, settings.meta)
    out = settings.out
    with alone(out):
        before = read_manifest(out)
        check_usable(out, before)
        inputs = with_digests(found, before.inputs if before else (), os.cpu_count() or 1)
        ledger = opened(out, before, options=settings.rules(), inputs=inputs)
        if ledger.manifest.complete:
            shutil.rmtree(out / stages.WORK, ignore_errors=True)
            return report(ledger.manifest, notes=("nothing was left to do",))
        remove_unfinished(out)
        if before is None:
            most, left = disk_needed(found)
            say_disk(out, most, left, least=left)
        with engine(out, memory) as database:
            job = stages.Job(
                engine=database, ledger=ledger, settings=settings, found=found, progress=progress
            )
            stages.make_histories(job)
            make_splits(job)
            if not ledger.has("audit"):
                ledger.finish("audit", [], audit(database, out, settings))
        ledger.complete(totals(ledger), without=stages.WORK)
        shutil.rmtree(out / stages.WORK, ignore_errors=True)
    return report(ledger.manifest)


def totals(ledger: Ledger) -> dict[str, dict[str, int]]:
    """The sums over all parts, with what each rule dropped."""
    history = ledger.sums(stages.HISTORIES)
    return {
        "rows": {
            **ledger.sums("reviews"),
            "of an item without a title": history["untitled"],
            "again in the category": history["titled"] - history["first_of_category"],
            "again in another category": history["first_of_category"] - history["interactions"],
            "left": history["interactions"],
        },
        "users": {
            "with a usable review": history["users"] + history["users_left_without"],
            "left without an item": history["users_left_without"],
            "left": history["users"],
        },
        "metadata": ledger.sums("meta") | ledger.counts("items"),
        "roles": ledger.counts("splits/roles"),
        "audit": ledger.counts("audit"),
    }


def report(manifest: Manifest, *, notes: tuple[str, ...] = ()) -> Report:
    """What a complete build read, dropped and made."""
    named = {"rows": "Reviews", "users": "Users", "metadata": "Metadata", "roles": "Users by role"}
    counts = (
        Sheet(
            title=title,
            columns=("", "count"),
            rows=tuple((one.replace("_", " "), n) for one, n in manifest.totals[name].items()),
        )
        for name, title in named.items()
    )
    train, check = "what may be trained on", "before the target of 1a, or of 2019"
    of_splits = {"train": train, **MEANING, "validation": check}
    splits = Sheet(
        title="Splits",
        columns=("", "what", "users", "cases"),
        rows=tuple(
            (name, what, *manifest.parts[f"splits/{name}"].counts.values())
            for name, what in of_splits.items()
        ),
    )
    checked = manifest.totals["audit"]
    leaks = Sheet(
        title=f"Audit of {checked['training_rows']:,} training rows",
        columns=("rows", "count"),
        rows=tuple((what, checked[name]) for name, what in LEAKS.items()),
    )
    files = sum(len(part.files) for part in manifest.parts.values())
    split = f"split {manifest.digest[:12]}: {files} files, named with digests in the manifest"
    return Report(sheets=(*counts, splits, leaks), notes=(split, *notes))

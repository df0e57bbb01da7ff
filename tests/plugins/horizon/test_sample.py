"""The bundled sample is what its generator makes; there, a history foretells what follows."""

from __future__ import annotations

import gzip
from collections import Counter, defaultdict

from builders.horizon import built, rows_of
from samples.horizon import SAMPLE, write, write_data


def unpacked(folder):
    return {
        str(file.relative_to(folder)): gzip.decompress(file.read_bytes())
        for file in sorted(folder.rglob("*.gz"))
    }


def test_the_generator_makes_the_committed_content(tmp_path):
    assert unpacked(write(tmp_path)) == unpacked(SAMPLE)
    assert sum(file.stat().st_size for file in SAMPLE.rglob("*.gz")) < 500_000
    assert sum(file.stat().st_size for file in SAMPLE.rglob("*")) < 1_500_000


def test_the_committed_data_is_what_curation_makes_of_it(tmp_path):
    made, kept = write_data(tmp_path / "data"), SAMPLE / "data"
    files = sorted(str(file.relative_to(made)) for file in made.rglob("*.parquet"))
    assert files == sorted(str(file.relative_to(kept)) for file in kept.rglob("*.parquet"))
    for name in files:
        assert rows_of(made / name) == rows_of(kept / name), name


def hits(out):
    """How often the target of 1a is among ten things: the popular, or those that followed."""
    after: dict[int, Counter[int]] = defaultdict(Counter)
    popular: Counter[int] = Counter()
    for row in rows_of(out / "train.parquet"):
        popular.update(row["items"])
        for one, following in zip(row["items"], row["items"][1:], strict=False):
            after[one][following] += 1
    cases = rows_of(out / "cases-1a.parquet")

    def share(top):
        return sum(
            row["items"][-1] in {one for one, _ in top(row).most_common(10)} for row in cases
        ) / len(cases)

    return share(lambda row: popular), share(lambda row: after[row["items"][-2]])


def test_the_planted_order_foretells_the_next_thing_and_nothing_else_does(tmp_path):
    popular, following = hits(SAMPLE / "data")
    assert popular < 0.1
    assert following > 0.5
    popular, following = hits(built(write(tmp_path, ordered=False)))
    assert following < popular < 0.1

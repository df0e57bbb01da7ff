"""The tool `harness horizon drift`: how far the topics of held-out users are from those tested.

One LDA over both groups, with a user's titles and categories as a document, as in appendix C of
the paper; and the same between random parts of one group, which no drift separates.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from harness.base.errors import DataError, Interrupted
from harness.base.seeded_random import shuffled
from harness.contracts.published import PublishedTables
from harness.contracts.report import Axis, Figure, Points, Report, Sheet
from harness_horizon.curation.engine import engine, parquet, text
from harness_horizon.curation.ledger import complete_manifest
from harness_horizon.curation.settings import memory_bytes
from harness_horizon.curation.stages import HISTORIES, ITEMS, USERS
from harness_horizon.recommenders.training_data import data_folder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from harness.analysis.analysis import Progress

    Floats = NDArray[np.float64]
    Document = tuple[str, int, str]

IN, OUT = "in-distribution", "held-out"
MEASURES = ("entropy", "dominance", "KL(in‖out) of the means", "KL(in‖out) of pairs of users")

WORD = r"(?u)[^\W\d_]{2,}"
MOST = 50_000
PASSES, BATCH = 10, 128
"""How often the LDA reads each document, and how many at a time."""
PAIRS = 10_000
SMOOTHING = 0.001
"""What is added to the share of each topic before a KL."""
LEAST_USERS, TERMS, DRAWN = 10, 10, 2_000

Count = Annotated[int, Meta(ge=1)]
Several = Annotated[int, Meta(ge=2)]
Seed = Annotated[int, Meta(ge=0, lt=2**32)]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `harness horizon drift`."""

    data: Annotated[Path, Meta(description="what `harness data horizon` wrote, or sample")]
    users: Annotated[Count, Meta(description="the users of each group, by hash")] = 20_000
    least: Annotated[Count, Meta(description="the fewest interactions of a user")] = 1
    topics: Annotated[Several, Meta(description="the topics of the LDA")] = 50
    splits: Annotated[Several, Meta(description="random splits of a group for the null")] = 200
    memory: Annotated[str, Meta(description="what the whole process may hold in memory")] = "8GB"
    seed: Annotated[Seed, Meta(description="another seed draws other users, topics, splits")] = 0


def run(settings: Settings, progress: Progress) -> Report:
    """The topics of both groups, their distances, and the distances of random splits."""
    import sklearn  # type: ignore[import-untyped]  # noqa: F401  (absent: said before the work)
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    folder = data_folder(settings.data)
    manifest = complete_manifest(folder)
    try:
        progress("documents", 0)
        documents = _documents(settings, folder)
        # Sums of several threads differ in their last digits from one run to the next.
        with threadpool_limits(1):
            one, other, terms = _topics(settings, documents, progress)
            figures = _figures(one[:DRAWN], other[:DRAWN], settings.seed)
        sizes = [fmean(size for name, size, _ in documents if name == each) for each in (IN, OUT)]
        sheets = (_distances(settings, one, other, sizes, progress), _terms(one, other, terms))
    except (KeyboardInterrupt, Interrupted) as error:
        hint = "nothing is kept: the same command begins again; fewer --users take less time"
        raise Interrupted("the study was stopped", where=str(folder), hint=hint) from error
    about = f"split {manifest.digest[:12]}; figures show at most {DRAWN:,} users of each group"
    return Report(sheets=sheets, figures=figures, notes=(about,))


def entropy(shares: Floats) -> Floats:
    """The entropy of each row, in nats."""
    from scipy.special import entr

    return np.asarray(entr(shares).sum(axis=-1))


def divergence(one: Floats, other: Floats, smoothing: float = SMOOTHING) -> Floats:
    """KL(one‖other) of each row in nats, with `smoothing` added to every share of both."""
    from scipy.special import rel_entr

    p, q = ((each + smoothing) / (1 + smoothing * each.shape[-1]) for each in (one, other))
    return np.asarray(rel_entr(p, q).sum(axis=-1))


def distances(one: Floats, other: Floats, rng: np.random.Generator) -> Floats:
    """How far the users of `other` are from those of `one`, in each of MEASURES."""
    first, second = (rng.integers(len(each), size=PAIRS) for each in (one, other))
    of_means = divergence(one.mean(axis=0), other.mean(axis=0))
    of_pairs = divergence(one[first], other[second]).mean()
    return np.array([*np.subtract(_means(other), _means(one)), of_means, of_pairs])


def _means(shares: Floats) -> tuple[float, float]:
    """The mean entropy and dominance of users."""
    return float(entropy(shares).mean()), float(shares.max(axis=1).mean())


def random_splits(
    one: Floats, other: Floats, splits: int, rng: np.random.Generator
) -> Iterator[tuple[Floats, Floats]]:
    """Splits of the larger group; one part is as large as the smaller group, or half of it all."""
    larger = one if len(one) >= len(other) else other
    part = min(len(one), len(other), len(larger) // 2)
    size = len(larger) - part if larger is one else part
    for _ in range(splits):
        order = rng.permutation(len(larger))
        yield larger[order[:size]], larger[order[size:]]


def _documents(settings: Settings, folder: Path) -> list[Document]:
    """The group, interactions and document of the users of each group with the smallest hashes."""
    users, items = (parquet(folder / one) for one in (USERS, ITEMS))
    place = f"md5({text(f'{settings.seed}:drift:')} || user_id), user_id"
    chosen = " UNION ALL ".join(
        f"(SELECT user_id, {text(name)} AS name FROM {users} WHERE {role} "
        f"AND interactions >= {settings.least} ORDER BY {place} LIMIT {settings.users})"
        for name, role in ((IN, "tested"), (OUT, "held_out"))
    )
    with (
        tempfile.TemporaryDirectory(prefix="horizon-drift-") as spill,
        engine(Path(spill), memory_bytes(settings.memory)) as database,
    ):
        return database.rows(
            f"""
            WITH chosen AS ({chosen}), shown AS (
                SELECT user_id, name, generate_subscripts(items, 1) AS spot, unnest(items) AS item
                FROM {parquet(folder / HISTORIES / "*.parquet")}
                JOIN chosen USING (user_id)
            )
            SELECT name, count(*), string_agg(title || ' ' || category, ' ' ORDER BY spot)
            FROM shown JOIN {items} USING (item) GROUP BY name, user_id ORDER BY name, {place}
            """
        )


def _topics(
    settings: Settings, documents: list[Document], progress: Progress
) -> tuple[Floats, Floats, list[str]]:
    """The shares of topics in both groups, a row for each user, and the first terms of each."""
    from sklearn.decomposition import LatentDirichletAllocation  # type: ignore[import-untyped]
    from sklearn.feature_extraction.text import CountVectorizer  # type: ignore[import-untyped]

    words = CountVectorizer(token_pattern=WORD, stop_words="english", min_df=2, max_features=MOST)
    try:
        counts = words.fit_transform(document for *_, document in documents)
        kept = np.flatnonzero(counts.sum(axis=1))
    except ValueError:
        kept = np.array([], dtype=np.int64)
    names = np.array([documents[place][0] for place in kept])
    found = {name: int((names == name).sum()) for name in (IN, OUT)}
    if min(found.values()) < LEAST_USERS:
        raise DataError(
            "there are too few users with words that others have too",
            where=str(settings.data),
            found=", ".join(f"{number} {name}" for name, number in found.items()),
            expected=f"{LEAST_USERS} or more of each group",
        )
    counts, total = counts[kept], len(kept)
    seed = settings.seed
    lda = LatentDirichletAllocation(settings.topics, total_samples=total, random_state=seed)
    rng = np.random.default_rng(seed)
    for number in range(PASSES):
        order = rng.permutation(total)
        for start in range(0, total, BATCH):
            progress("topics", number * total + start, PASSES * total)
            lda.partial_fit(counts[order[start : start + BATCH]])
    shares = lda.transform(counts)
    terms = words.get_feature_names_out()
    first = np.argsort(-lda.components_, axis=1, kind="stable")[:, :TERMS]
    return shares[names == IN], shares[names == OUT], [" ".join(terms[one]) for one in first]


def _distances(
    settings: Settings, one: Floats, other: Floats, sizes: list[float], progress: Progress
) -> Sheet:
    """Each measure of both groups, between random splits, and in the paper."""
    rng = np.random.default_rng([settings.seed, 1])
    between = distances(one, other, rng)
    null: list[Floats] = []
    for parts in random_splits(one, other, settings.splits, rng):
        progress("random splits", len(null), settings.splits)
        null.append(distances(*parts, rng))
    numbers = [between, np.mean(null, axis=0), *np.quantile(null, [0.025, 0.975], axis=0)]
    of_groups: list[Any] = [*zip(_means(one), _means(other), strict=True), *[(None, None)] * 2]
    published = PublishedTables("harness_horizon").read("drift")
    printed = [kl or f"{of_in} and {of_out}" for _, of_in, of_out, kl in published.rows]
    rows: list[tuple[Any, ...]] = [("users", len(one), len(other), *[None] * 5)]
    rows.append(("mean interactions", *sizes, *[None] * 5))
    for row, name in enumerate(MEASURES):
        values = (float(each[row]) for each in numbers)
        rows.append((name, *of_groups[row], *values, printed[min(row, 2)]))
    return Sheet(
        title="Topics of users, as in appendix C",
        columns=("", IN, OUT, "between", "null", "null low", "null high", "the paper"),
        rows=tuple(rows),
        notes=(
            "in nats; dominance is the share of a user's largest topic",
            f"null: {settings.splits} random splits of the larger group into {len(parts[0]):,} and "
            f"{len(parts[1]):,} users, their mean and where 95% of them lie",
            "short histories have few topics, even with the same tastes: see --least",
            f"{settings.topics} topics (ours), {PAIRS:,} pairs, shares smoothed by {SMOOTHING:g}",
            *published.notes,
        ),
        digits=3,
    )


def _terms(one: Floats, other: Floats, terms: list[str]) -> Sheet:
    """Each topic with its mean share in both groups, those of held-out users first."""
    of_in, of_out = (each.mean(axis=0) * 100 for each in (one, other))
    order = np.argsort(of_in - of_out, kind="stable")
    return Sheet(
        title="Topics, first those that held-out users have more of",
        columns=("topic", f"{IN} %", f"{OUT} %", "first terms"),
        rows=tuple((int(k) + 1, float(of_in[k]), float(of_out[k]), terms[k]) for k in order),
        digits=2,
    )


def _figures(one: Floats, other: Floats, seed: int) -> tuple[Figure, Figure]:
    """The users of both groups by t-SNE, and those of the larger group split at random."""
    from sklearn.manifold import TSNE  # type: ignore[import-untyped]

    users = np.concatenate([one, other])
    tsne = TSNE(perplexity=min(30.0, (len(users) - 1) / 3), random_state=seed)
    placed = tsne.fit_transform(users).tolist()
    places = {IN: placed[: len(one)], OUT: placed[len(one) :]}
    larger = IN if len(one) >= len(other) else OUT
    order = shuffled(Random(seed), places[larger])
    halves = {"a half": order[::2], "the others": order[1::2]}
    null = _figure(f"The {larger} users, split at random", halves)
    return _figure("Users by their topics", places), null


def _figure(title: str, parts: dict[str, Any]) -> Figure:
    marks = tuple(
        Points(label=name, x=tuple(x for x, _ in at), y=tuple(y for _, y in at), faint=True)
        for name, at in parts.items()
    )
    return Figure(title=title, x=Axis(label="t-SNE 1"), y=Axis(label="t-SNE 2"), marks=marks)

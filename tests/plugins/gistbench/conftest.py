"""Records, histories and a desk written by hand."""

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from builders.records import WrittenRecords, make_records
from builders.runs import keep_task, make_summary, make_task

from harness.base.hashing import stable_int
from harness.contracts.records import Score
from harness.contracts.task import DataSpec
from harness.pipeline.memos import LocalMemo
from harness.runs.manifest import RoleEntry, StageEntry


@pytest.fixture
def recorded() -> Callable[..., WrittenRecords]:
    """The records of a stage from pairs of an item and its value or failure."""

    def make(pairs: Iterable[tuple[Any, Any]] = ()) -> WrittenRecords:
        in_order = sorted(make_records(pairs), key=lambda one: (stable_int(one.user), one.id))
        return WrittenRecords(in_order)

    return make


class ScriptedDesk:
    """A desk that gives prepared outcomes one after the other and remembers what it was asked."""

    def __init__(self, *outcomes: Any, memory: dict[str, str] | None = None, **options: Any):
        self.outcomes = list(outcomes)
        self.options = SimpleNamespace(**options)
        self.memory: dict[str, str] = {} if memory is None else memory
        self.memos: list[str] = []
        self.asked: list[Any] = []

    async def ask(
        self, role: str, prompt: str, variables: Any, *, read: Any, truncated: str
    ) -> Any:
        self.asked.append((role, prompt, variables, truncated))
        outcome = self.outcomes.pop(0)
        return read(outcome) if isinstance(outcome, str) else outcome

    async def judge(self, question: Any, *, role: str) -> Any:
        self.asked.append((role, question))
        return self.outcomes.pop(0)

    def memo(self, name: str) -> Any:
        self.memos.append(name)
        return LocalMemo(self.memory)


class WrittenHistories(SimpleNamespace):
    """Histories of a few people: `users`, `signals`, `pool` and `seed` as given."""

    def history(self, user: str) -> list[Any]:
        return list(self.histories[user])

    def own_of_pool(self, user: str) -> frozenset[str]:
        own = {one.object for one in self.histories[user]}
        return frozenset(one.object for one in self.pool if one.object in own)


@pytest.fixture
def desk() -> type[ScriptedDesk]:
    return ScriptedDesk


@pytest.fixture
def written_histories() -> Callable[..., WrittenHistories]:
    """Histories by user, each engagement as (object, text, signal), with what else they hold."""

    def make(people: dict[str, Iterable[tuple[str, str, str]]], **more: Any) -> WrittenHistories:
        written = {
            user: [SimpleNamespace(object=o, text=t, signal=s) for o, t, s in engagements]
            for user, engagements in people.items()
        }
        defaults = {"signals": ("explicit_positive",), "pool": (), "seed": 0}
        return WrittenHistories(users=list(written), histories=written, **{**defaults, **more})

    return make


@pytest.fixture
def kept(tmp_path):
    """A finished run, from what it found of each user: judged interests, or why there is nothing.

    Runs agree in everything that is not given.
    """
    from harness_gistbench.benchmark import GISTBENCH
    from harness_gistbench.records import SIGNALS, Options

    def make(
        model,
        users,
        *,
        dataset="gist_synthetic",
        options=None,
        signals=SIGNALS[:3],
        run=None,
        label=None,
        judge="judge-70b",
        least_scored=0.5,
    ):
        options = options or Options()
        task = make_task(
            dataset,
            benchmark="gistbench",
            metrics=("ig_f1", "is"),
            options=msgspec.to_builtins(options),
            least_scored=least_scored,
        )
        names = (stage.name for stage in GISTBENCH.stages)
        asked = {"judge": judge, "retrieval_judge": judge}
        return keep_task(
            tmp_path / (run or f"run-of-{model}"),
            task,
            *(StageEntry(name=name, key="", file=f"{name}.jsonl") for name in names),
            scores=(_scored(user, found, options, signals) for user, found in users.items()),
            label=label or model,
            model=model,
            roles={"candidate": RoleEntry(name=model), "judge": RoleEntry(name=judge)},
            benchmark=GISTBENCH,
            options=options,
            summary=make_summary(dataset, benchmark="gistbench", model=model, roles=asked),
        )

    return make


def _scored(user, found, options, signals):
    from harness_gistbench.metrics import COLUMNS, scored_against, verified_categories
    from harness_gistbench.records import Profile

    if isinstance(found, str):
        return Score(id=user, user=user, missing=dict.fromkeys(COLUMNS, found))
    profile = Profile(signals=signals, windows=1, unreadable=0, interests=tuple(found))
    verified = verified_categories(profile, options.verification)
    details = msgspec.structs.replace(profile, verified=verified)
    return scored_against(Score(id=user, user=user, details=details), verified, options)


@pytest.fixture
def judged():
    """An interest, from its category and the numbers of its evidence by signal.

    `found` is how many backing objects were found again, of how many; None where nobody was asked.
    """
    from harness_gistbench.records import Counts, Judged

    def make(name, category, *, liked=0, watched=0, skipped=0, disliked=0, found=None):
        counts = Counts(
            explicit_positive=liked, implicit_positive=watched, implicit_negative=skipped,
            explicit_negative=disliked,
        )  # fmt: skip
        correct, backing = found or (None, None)
        cited = liked + watched + skipped + disliked
        return Judged(
            name=name, cited=cited, category=category, counts=counts, correct=correct,
            backing=backing,
        )  # fmt: skip

    return make


@pytest.fixture
def load_histories():
    """Loads the histories of a task from files, as the task describes its data and options.

    Everybody is kept, however short their history, unless `min_engagements` says otherwise. What
    was noted of the data loaded last stands in `load_histories.notes`.
    """
    from pathlib import Path

    import yaml
    from harness_gistbench.records import Options
    from harness_gistbench.sources import load

    from harness.data import open_dataset

    tasks = Path(__file__).parents[3] / "task_configs/gistbench"

    def read(task, data, *, limit=None, seed=0, tables=None, shared=None, name=None, **options):
        written = yaml.safe_load((tasks / f"{task}.yaml").read_text())
        for table, changes in (tables or {}).items():
            written["data"]["tables"][table].update(changes)
        dataset = open_dataset(
            msgspec.convert({**written["data"], "size": 1000}, DataSpec),
            data=str(data),
            limit=limit,
            seed=seed,
            package=None,
            task=name or task,
            shared=shared,
        )
        read.notes = dataset.notes
        asked = {**written["options"], "min_engagements": 1, **options}
        return load(dataset, msgspec.convert(asked, Options))

    return read

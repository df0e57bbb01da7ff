"""The rows of the published tables. Models are called as in Table 20, datasets as our tasks."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from harness_gistbench.records import Signal

Dataset: TypeAlias = Literal["synthetic", "kuairec", "mind", "amazon_music", "goodreads"]
Judgement: TypeAlias = Literal["evidence", "retrieval"]


class Scores(msgspec.Struct, frozen=True, array_like=True):
    """Table 3: medians of one model on one dataset; None where they are not known."""

    model: str
    dataset: Dataset
    ig_f1: float | None
    is_: float | None = msgspec.field(name="is")


class PrecisionRecall(msgspec.Struct, frozen=True, array_like=True):
    """Table 4: what IG F1 is made of, for one model on one dataset."""

    model: str
    dataset: Dataset
    ig_p: float
    ig_r: float


class Survey(msgspec.Struct, frozen=True, array_like=True):
    """Table 5: one model against the interests that users stated."""

    model: str
    s_prec: float
    s_rec: float
    ig_p: float
    ig_r: float
    ig_f1: float
    is_: float = msgspec.field(name="is")


class InstructionFollowing(msgspec.Struct, frozen=True, array_like=True):
    """Table 6: how well one model follows instructions elsewhere, and its median IG F1."""

    model: str
    elo: int
    ig_f1: float


class FailureModes(msgspec.Struct, frozen=True, array_like=True):
    """Table 7: why one model's interests are not verified."""

    model: str
    short_of_implicit: float
    short_of_explicit: float
    too_negative: float


class SyntheticUsers(msgspec.Struct, frozen=True, array_like=True):
    """Table 10: engagements of one kind a user, synthetic against real."""

    signal: Signal
    t: float
    p: float
    synthetic_mean: float
    real_mean: float


class Coverage(msgspec.Struct, frozen=True, array_like=True):
    """Table 11: the distinct interests and the categories that one model names."""

    model: str
    interests: int
    covered: int
    share: float


class WindowSize(msgspec.Struct, frozen=True, array_like=True):
    """Table 14: scores and predicted interests at one number of engagements a prompt."""

    window: int
    ig_p: float
    ig_r: float
    ig_f1: float
    is_: float = msgspec.field(name="is")
    interests: int


class OracleAgreement(msgspec.Struct, frozen=True, array_like=True):
    """Table 15: the pairs of user and category that exactly so many models verify."""

    models: int
    pairs: int
    share: float


class OracleByModel(msgspec.Struct, frozen=True, array_like=True):
    """Table 16: the pairs that one model verifies, and those that no other does."""

    model: str
    verified: int
    sole: int
    share: float


class RaterPair(msgspec.Struct, frozen=True, array_like=True):
    """Table 17: Cohen's κ of two raters."""

    task: Judgement
    first: str
    second: str
    kappa: float


class RaterMajority(msgspec.Struct, frozen=True, array_like=True):
    """Table 18: one rater against the majority."""

    task: Judgement
    rater: str
    agreement: float
    kappa: float
    f1: float


class RaterSplit(msgspec.Struct, frozen=True, array_like=True):
    """Table 19: how often the raters divide so."""

    task: Judgement
    split: str
    share: float


class Model(msgspec.Struct, frozen=True, array_like=True):
    """Table 20: a model and its name on the hub."""

    model: str
    hub_id: str
    role: Literal["candidate", "judge"]


class DatasetCoverage(msgspec.Struct, frozen=True, array_like=True):
    """Section 10.4: categories on one dataset, of GPT-OSS-120B alone and of all models."""

    dataset: Dataset
    alone: int
    together: int


class Concentration(msgspec.Struct, frozen=True, array_like=True):
    """Section 10.4: the largest categories that hold so many of the interests, in per cent."""

    interests: float
    categories: float


class Number(msgspec.Struct, frozen=True, array_like=True):
    """A number that stands in no table."""

    name: str
    value: float
    source: str
    about: str

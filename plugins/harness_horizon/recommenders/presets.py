"""The settings of recommenders: the paper's, and smaller ones for small data."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

Kind = Literal["sasrec", "bert4rec", "gru4rec", "core", "popular", "neighbours"]
"""What can be trained: four networks, and two rules that count."""

NETWORKS: tuple[Kind, ...] = ("sasrec", "bert4rec", "gru4rec", "core")
"""The kinds that need torch."""

Preset = Literal["published", "small"]
Loss = Literal["ce", "bpr"]
Size = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, lt=1)]

PAPERS_LOSS: dict[Kind, Loss] = {"sasrec": "ce", "bert4rec": "bpr", "gru4rec": "bpr", "core": "ce"}
"""Table 8. The text of appendix E has BPR for SASRec as well."""

PAPERS_BATCH: dict[Kind, int] = {"sasrec": 4096, "bert4rec": 8192, "gru4rec": 8192, "core": 4096}
"""Table 8; a batch with BPR counts pairs of a case and a negative, as RecBole does."""


class Hyper(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a network and its training: by default the paper's (E, Table 8).

    Those that the paper does not name are RecBole's defaults: `last_only` (BERT4Rec's `ft_ratio`,
    how often only a history's last item is masked), and `temperature`, `session_dropout`
    (`sess_dropout`) and `item_dropout` of CORE. So are: Adam without decay, the first weights
    (normal with deviation .02; Xavier in GRU4Rec; uniform in CORE), layer norms with epsilon 1e-12,
    a training case for each prefix of a history, and negatives that are not the target (in
    BERT4Rec: not in the history).
    """

    width: Size = 256
    layers: Size = 3
    heads: Size = 4
    inner: Size = 256
    dropout: Share = 0.15
    length: Annotated[int, Meta(ge=2)] = 100
    loss: Loss = "ce"
    negatives: Size = 10
    mask_ratio: Annotated[float, Meta(gt=0, le=1)] = 0.2
    last_only: Share = 0.5
    temperature: Annotated[float, Meta(gt=0)] = 0.07
    session_dropout: Share = 0.2
    item_dropout: Share = 0.2
    batch: Size = 4096
    learning_rate: Annotated[float, Meta(gt=0)] = 2e-5
    epochs: Size = 10
    patience: Size = 10
    seed: Annotated[int, Meta(ge=0)] = 2025


SMALL = {
    **{"width": 64, "layers": 2, "heads": 2, "inner": 128, "dropout": 0.2, "length": 50},
    **{"batch": 128, "learning_rate": 1e-3, "epochs": 20, "patience": 3},
}
"""What the preset `small` changes; these sizes are ours."""


def hyper_of(kind: Kind, preset: Preset, *, loss: Loss | None = None) -> Hyper:
    """The settings of a network in a preset, with the paper's loss or another.

    hyper_of("sasrec", "small").learning_rate
    """
    published = Hyper(loss=loss or PAPERS_LOSS[kind], batch=PAPERS_BATCH[kind])
    return replace(published, **SMALL) if preset == "small" else published

"""Questions and answers of recommenders as text: item numbers, and a ranking in JSON."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from harness_horizon.recommenders.rankers import Ranking

_HISTORY = re.compile(r"\s*(?:\d{1,18}(?:\s+\d{1,18})*)?\s*")


def history_in(text: str) -> NDArray[np.int64] | None:
    """The item numbers of a question, oldest first; None if it is something else.

    >>> history_in("12 7 40").tolist()
    [12, 7, 40]
    """
    if not _HISTORY.fullmatch(text):
        return None
    return np.array(text.split(), dtype=np.int64)


def reply_of(ranking: Ranking) -> str:
    """A ranking as JSON, its scores so exact that equal ones stay equal and others do not.

    `{"items":[40,7],"scores":[1.5,0.25]}`
    """
    items = ",".join(map(str, ranking.items.tolist()))
    exact = 9 if ranking.scores.dtype == np.float32 else 17
    scores = ",".join(f"{score:.{exact}g}" for score in ranking.scores.tolist())
    return f'{{"items":[{items}],"scores":[{scores}]}}'

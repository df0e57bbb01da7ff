"""Each write of SQLite itself fails once, or is the last one: between the pages of a commit too."""

from __future__ import annotations

from dataclasses import replace

import pytest
from simulated.test_writes import KINDS, PLANS, until_whole

pytestmark = pytest.mark.slow

PLAN = replace(PLANS["with a store"], paged=True)
EVERY = 8
"""Every eighth write meets each kind of trouble here, and in the soak every one does."""


@pytest.mark.parametrize("kind", KINDS)
def test_the_nth_page_is_the_last_or_fails(machine, kind):
    until_whole(PLAN, machine, kind, every=EVERY, first=1 + KINDS.index(kind))

"""Trouble at every single write of a suite and of batches, in a process of no simulated clock.

make soak SOAK=command_writes.py
"""

from __future__ import annotations

import pytest
from simulated import test_command_writes as commands
from simulated.test_writes import KINDS


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("trouble", KINDS)
@pytest.mark.parametrize("kind", commands.LIVES)
def test_each_write_of_commands_is_the_last_or_fails(kind, trouble):
    commands.until_through(kind, trouble)

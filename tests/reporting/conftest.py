"""What the tests of printed tables share."""

import re
from collections.abc import Callable

import pytest

FIGURE = re.compile(r"[≥<~±+-]? ?\d(?:[\d.,]*\d)?[%k]?")


@pytest.fixture
def table() -> Callable[..., str]:
    """The text of printed lines, once the first word and the figures of each are as given.

    assert table(lines, "support 0.734 37") == snapshot("support   0.734  37")

    Only words may stand in a snapshot: `--inline-snapshot=fix` must not hide another figure.
    """

    def of(lines, *figures):
        found = [(line.split()[0], FIGURE.findall(line)) for line in lines if line]
        assert [" ".join([word, *each]).replace("  ", " ") for word, each in found if each] == [
            *figures
        ]
        return "\n".join(lines)

    return of

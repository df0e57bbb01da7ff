"""Table 1 of the paper, as it is shipped."""

from __future__ import annotations

from harness_behaviour.building.cells import table1
from harness_behaviour.records import PROXIES


def test_the_totals_are_those_of_the_paper():
    assert sum(table1("movies").values()) == 5_096
    assert sum(table1("music").values()) == 4_924


def test_there_is_one_prompt_without_history_for_each_value_of_a_proxy():
    movies, music = table1("movies"), table1("music")
    assert [movies[proxy, 0] for proxy in PROXIES["movies"]] == [1, 7, 2, 17, 51]
    assert [music[proxy, 0] for proxy in PROXIES["music"]] == [1, 17, 4, 2, 8]

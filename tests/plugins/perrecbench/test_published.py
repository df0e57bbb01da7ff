"""The paper's tables as they are shipped, against what the paper says of them."""

import pytest
from harness_perrecbench.benchmark import PERRECBENCH
from harness_perrecbench.paper import CELLS, TABLES, tails

from harness.contracts.published import PublishedResult


def test_table_1_is_published_as_results_of_the_nine_tasks_and_their_average():
    found = PERRECBENCH.published()
    assert len(found) == 19 * 10
    sonnet = {one.task: one for one in found if one.model == "CLAUDE-3.5-SONNET"}
    comparable = sonnet["perrec_medium_listwise"].comparable_if
    assert "without --limit" in comparable
    assert sonnet["perrec_medium_listwise"] == PublishedResult(
        task="perrec_medium_listwise", metric="ptc_published", model="CLAUDE-3.5-SONNET",
        value=0.14, n=200, source="Table 1", comparable_if=comparable,
    )  # fmt: skip
    assert (sonnet["perrec"].value, sonnet["perrec"].n) == (0.18, None)


@pytest.mark.parametrize(
    ("name", "named"), [("main", "model"), ("prompting", "prompting"), ("tuning", "training")]
)
def test_averages_that_do_not_follow_from_the_cells_are_noted(name, named):
    told = " ".join(TABLES.read(name).notes).casefold()
    for row in TABLES.read(name).dicts():
        if row["average"] is not None:
            found = sum(row[f"{level} {ask}"] for level, ask in CELLS) / len(CELLS)
            line = f"{row[named]} {found:.3f} for {row['average']:.2f}".replace("0.", ".")
            assert round(found, 2) == row["average"] or line.casefold() in told


def test_the_last_lines_of_list_prompts_are_known_of_models_of_table_1_alone():
    rows = TABLES.read("tails").dicts()
    assert [row["model"] for row in rows] == [row["model"] for row in TABLES.read("main").dicts()]
    said = {row[level] for row in rows for level in ("easy", "medium", "hard")}
    assert said == {None, "now", "plain", "dot", "older"}
    assert tails()["GPT-4o-MINI"] == "older"
    assert tails()["GEMMA-2-27B-IT"] == "plain/dot"
    assert tails()["GEMMA-2-9B-IT"] == "not recorded"

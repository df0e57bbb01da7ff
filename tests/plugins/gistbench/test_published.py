import math
import statistics

import pytest
from harness_gistbench.benchmark import GISTBENCH
from harness_gistbench.paper import TABLES
from scipy.stats import spearmanr


def rows(name):
    return TABLES.read(name).dicts()


NUMBERS = {row["name"]: row["value"] for row in rows("numbers")}


def test_no_row_is_lost():
    counts = {
        "scores": 8 * 5, "precision_recall": 7 * 2, "survey": 8, "instruction_following": 8,
        "failure_modes": 8, "synthetic_users": 3, "coverage": 8, "window_size": 4,
        "oracle_agreement": 7, "oracle_by_model": 7, "rater_pairs": 2 * 6, "rater_majority": 2 * 4,
        "rater_splits": 2 * 3, "models": 9,
    }  # fmt: skip
    assert {name: len(TABLES.read(name).rows) for name in counts} == counts


def test_models_are_called_the_same_in_every_table_and_by_their_names_on_the_hub():
    known = {row["model"] for row in rows("models")}
    for name in TABLES.names():
        table = TABLES.read(name)
        if "model" in table.columns:
            assert {row["model"] for row in table.dicts()} <= known
    assert [row["hub_id"] for row in rows("models") if row["role"] == "judge"] == [
        "meta-llama/Llama-3.3-70B-Instruct"
    ]


def test_what_lost_its_place_is_unknown_and_no_zero():
    table = TABLES.read("scores")
    unknown = [row for row in table.dicts() if None in (row["ig_f1"], row["is"])]
    assert [(row["model"], row["dataset"]) for row in unknown] == [
        ("Llama-3.1-8B", dataset) for dataset in ("synthetic", "kuairec", "mind")
    ]
    assert "dash" in table.notes[0]


def test_tables_3_and_4_are_published_as_results_of_the_tasks():
    found = GISTBENCH.published()
    assert len(found) == 2 * 8 * 5 - 2 * 3 + 2 * 7 * 2
    one, *_ = [each for each in found if (each.task, each.metric) == ("gist_mind", "is")]
    assert (one.model, one.value, one.source) == ("GPT-OSS-120B", 0.666, "Table 3")
    assert "oracle of the paper's models" in one.comparable_if


def test_tables_agree_with_each_other_and_percentages_with_their_counts():
    table = TABLES.read("oracle_agreement")
    assert sum(row["pairs"] for row in table.dicts()) == NUMBERS["oracle_pairs"] == 91_099
    assert NUMBERS["oracle_file_pairs"] == 91_054
    of_oracle = sum(row["models"] * row["pairs"] for row in rows("oracle_agreement"))
    of_models = sum(row["verified"] for row in rows("oracle_by_model"))
    assert of_oracle == of_models == 214_378
    alone = rows("oracle_agreement")[0]
    assert alone["models"] == 1
    assert alone["pairs"] == sum(row["sole"] for row in rows("oracle_by_model")) == 37_672
    for row in rows("oracle_agreement"):
        assert row["share"] == pytest.approx(100 * row["pairs"] / 91_099, abs=0.051)
    for row in rows("oracle_by_model"):
        assert row["share"] == pytest.approx(100 * row["sole"] / 91_099, abs=0.051)
    for row in rows("coverage"):
        assert row["share"] == pytest.approx(100 * row["covered"] / 325, abs=0.051)
    for task in ("evidence", "retrieval"):
        shares = [row["share"] for row in rows("rater_splits") if row["task"] == task]
        assert sum(shares) == pytest.approx(100)
        kappas = [row["kappa"] for row in rows("rater_pairs") if row["task"] == task]
        assert sum(kappas) / 6 == pytest.approx(NUMBERS[f"{task}_mean_kappa"], abs=0.006)


def test_the_survey_correlation_of_the_rows_is_not_the_printed_one():
    table = TABLES.read("survey")
    survey = [statistics.harmonic_mean([row["s_prec"], row["s_rec"]]) for row in table.dicts()]
    ours = [math.sqrt(row["ig_f1"] * row["is"]) for row in table.dicts()]
    found = round(spearmanr(survey, ours).statistic, 2)
    assert found == NUMBERS["survey_rho_of_rows"] == 0.57
    assert NUMBERS["survey_rho_printed"] == 0.67


def test_the_elo_correlations_of_the_rows_are_not_the_printed_ones():
    table = TABLES.read("instruction_following")

    def rho(kept: list[dict]) -> float:
        return round(spearmanr([r["elo"] for r in kept], [r["ig_f1"] for r in kept]).statistic, 2)

    above = [row for row in table.dicts() if row["elo"] > 1200]
    upwards = [row for row in table.dicts() if row["elo"] >= 1200]
    assert (len(table.rows), len(above), len(upwards)) == (8, 6, 7)
    assert rho(table.dicts()) == NUMBERS["elo_rho_of_rows"] == 0.55
    assert rho(above) == NUMBERS["elo_rho_above_of_rows"] == -0.09
    assert rho(upwards) == NUMBERS["elo_rho_from_of_rows"] == 0.33
    assert (NUMBERS["elo_rho_printed"], NUMBERS["elo_rho_above_printed"]) == (0.48, -0.1)

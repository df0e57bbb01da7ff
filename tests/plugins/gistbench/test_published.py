import math

import pytest
from harness_gistbench.published import TABLES, published_table, rows
from scipy.stats import spearmanr


def published(kind):
    return published_table(next(name for name, each in TABLES.items() if each is kind))


NUMBERS = {row.name: row.value for row in published(rows.Number).rows}


def harmonic(first: float, second: float) -> float:
    return 2 * first * second / (first + second)


@pytest.mark.parametrize("name", TABLES)
def test_every_table_names_its_source_and_its_columns_as_its_rows_do(name):
    table = published(TABLES[name])
    assert table.source.startswith(("Table ", "Section"))
    assert table.title and table.units and table.rows
    assert table.columns == TABLES[name].__struct_encode_fields__


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        (rows.Scores, 8 * 5),
        (rows.PrecisionRecall, 7 * 2),
        (rows.Survey, 8),
        (rows.InstructionFollowing, 8),
        (rows.FailureModes, 8),
        (rows.SyntheticUsers, 3),
        (rows.Coverage, 8),
        (rows.WindowSize, 4),
        (rows.OracleAgreement, 7),
        (rows.OracleByModel, 7),
        (rows.RaterPair, 2 * 6),
        (rows.RaterMajority, 2 * 4),
        (rows.RaterSplit, 2 * 3),
        (rows.Model, 9),
    ],
)
def test_no_row_is_lost(kind, count):
    assert len(published(kind).rows) == count


def test_models_are_called_the_same_in_every_table():
    known = {row.model for row in published(rows.Model).rows}
    for kind in TABLES.values():
        table = published(kind)
        if "model" in table.columns:
            assert {row.model for row in table.rows} <= known


def test_the_names_on_the_hub_are_those_of_the_last_table():
    names = {row.model: row.hub_id for row in published(rows.Model).rows}
    assert names["GPT-OSS-120B"] == "openai/gpt-oss-120b"
    assert names["Qwen3-VL-235B"] == "Qwen/Qwen3-VL-235B-A22B-Instruct"
    assert names["R1-Distill-70B"] == "deepseek-ai/DeepSeek-R1-Distill-Llama-70B"
    assert [row.hub_id for row in published(rows.Model).rows if row.role == "judge"] == [
        "meta-llama/Llama-3.3-70B-Instruct"
    ]


def test_what_lost_its_place_is_unknown_and_no_zero():
    table = published(rows.Scores)
    found = {row.dataset: (row.ig_f1, row.is_) for row in table.rows if row.model == "Llama-3.1-8B"}
    assert found == {
        "synthetic": (None, None),
        "kuairec": (None, None),
        "mind": (None, None),
        "amazon_music": (5.6, 16.7),
        "goodreads": (0.0, 0.0),
    }
    assert "dash" in table.notes[0]
    unknown = [row for row in table.rows if row.ig_f1 is None or row.is_ is None]
    assert len(unknown) == 3


def test_the_oracle_has_as_many_pairs_as_it_says():
    table = published(rows.OracleAgreement)
    assert sum(row.pairs for row in table.rows) == NUMBERS["oracle_pairs"] == 91_099
    assert NUMBERS["oracle_file_pairs"] == 91_054


def test_what_the_models_verify_is_what_the_oracle_counts():
    of_oracle = sum(row.models * row.pairs for row in published(rows.OracleAgreement).rows)
    of_models = sum(row.verified for row in published(rows.OracleByModel).rows)
    assert of_oracle == of_models == 214_378


def test_what_one_model_alone_verifies_is_counted_alike_in_both_tables():
    alone = published(rows.OracleAgreement).rows[0]
    assert alone.models == 1
    assert alone.pairs == sum(row.sole for row in published(rows.OracleByModel).rows) == 37_672


def test_percentages_follow_from_their_counts():
    for row in published(rows.OracleAgreement).rows:
        assert row.share == pytest.approx(100 * row.pairs / 91_099, abs=0.051)
    for row in published(rows.OracleByModel).rows:
        assert row.share == pytest.approx(100 * row.sole / 91_099, abs=0.051)
    for row in published(rows.Coverage).rows:
        assert row.share == pytest.approx(100 * row.covered / 325, abs=0.051)


def test_the_splits_of_the_raters_make_up_everything():
    for task in ("evidence", "retrieval"):
        shares = [row.share for row in published(rows.RaterSplit).rows if row.task == task]
        assert sum(shares) == pytest.approx(100)


def test_mean_kappas_follow_from_the_pairs():
    for task in ("evidence", "retrieval"):
        kappas = [row.kappa for row in published(rows.RaterPair).rows if row.task == task]
        assert sum(kappas) / 6 == pytest.approx(NUMBERS[f"{task}_mean_kappa"], abs=0.006)


def test_the_survey_correlation_of_the_rows_is_not_the_printed_one():
    table = published(rows.Survey)
    survey = [harmonic(row.s_prec, row.s_rec) for row in table.rows]
    ours = [math.sqrt(row.ig_f1 * row.is_) for row in table.rows]
    found = round(spearmanr(survey, ours).statistic, 2)
    assert found == NUMBERS["survey_rho_of_rows"] == 0.57
    assert NUMBERS["survey_rho_printed"] == 0.67


def test_the_elo_correlations_of_the_rows_are_not_the_printed_ones():
    table = published(rows.InstructionFollowing)

    def rho(kept: list[rows.InstructionFollowing]) -> float:
        return round(spearmanr([r.elo for r in kept], [r.ig_f1 for r in kept]).statistic, 2)

    above = [row for row in table.rows if row.elo > 1200]
    upwards = [row for row in table.rows if row.elo >= 1200]
    assert (len(table.rows), len(above), len(upwards)) == (8, 6, 7)
    assert rho(list(table.rows)) == NUMBERS["elo_rho_of_rows"] == 0.55
    assert rho(above) == NUMBERS["elo_rho_above_of_rows"] == -0.09
    assert rho(upwards) == NUMBERS["elo_rho_from_of_rows"] == 0.33
    assert (NUMBERS["elo_rho_printed"], NUMBERS["elo_rho_above_printed"]) == (0.48, -0.1)


def test_medians_that_two_tables_share_agree():
    survey = {row.model: row.ig_f1 for row in published(rows.Survey).rows}
    elo = {row.model: row.ig_f1 for row in published(rows.InstructionFollowing).rows}
    assert survey == elo


def test_two_tables_have_different_oracles_and_say_so():
    table = published(rows.WindowSize)
    [at_100] = [row for row in table.rows if row.window == 100]
    [of_all] = [
        row
        for row in published(rows.PrecisionRecall).rows
        if (row.model, row.dataset) == ("GPT-OSS-120B", "synthetic")
    ]
    assert (at_100.ig_r, of_all.ig_r) == (91.0, 60.5)
    assert "60.5" in table.notes[0]


def test_a_published_table_can_be_shown():
    sheet = published(rows.RaterMajority).sheet(digits=2)
    assert sheet.title == (
        "Published, Table 18: Each rater against the majority of three or four (per cent; κ; F1)"
    )
    assert sheet.columns == ("task", "rater", "agreement", "kappa", "f1")
    assert sheet.rows[0] == ("evidence", "A1", 93.7, 0.81, 0.96)
    assert sheet.digits == 2

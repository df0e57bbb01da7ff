"""The paper's tables and its taxonomy, as they are shipped."""

import csv
import math
import statistics

import pytest
from harness_gistbench.benchmark import GISTBENCH
from harness_gistbench.categories import categories, taxonomy_digest
from harness_gistbench.paper import TABLES
from harness_gistbench.records import Category
from scipy.stats import spearmanr

from harness.cli.main import main


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


def test_the_bundled_taxonomy_holds_325_names_in_the_order_of_their_code_points():
    taxonomy = categories(None)
    assert [one.id for one in taxonomy] == list(range(1, 326))
    names = [one.name for one in taxonomy]
    assert names == sorted(names)
    from harness_judges.answers import clean

    assert len({clean(one.name) for one in categories(None)}) == 325


def test_ids_and_names_are_those_of_the_papers_lists():
    names = {
        1: "A.I. Art",
        55: "Children’s Books",
        89: "Ecology / Climatology",
        93: "Entrepreneurship & Small Business",
        113: "Furniture, Home Appliances & Goods",
        166: "Local, Regional or National Cuisine",
        325: "eSports",
    }
    assert {one.id: one.name for one in categories(None) if one.id in names} == names


@pytest.mark.real_data
def test_the_authors_file_has_the_same_ids_and_four_other_spellings(real_data):
    file = real_data / "gistbench" / "categories.csv"
    with file.open(encoding="utf-8", newline="") as rows:
        authors = {int(row["category_id"]): row["category_name"] for row in csv.DictReader(rows)}
    ours = {one.id: one.name for one in categories(None)}
    assert authors.keys() == ours.keys()
    assert [id for id in ours if ours[id] != authors[id]] == [55, 89, 93, 113]
    assert {one.id: one.name for one in categories(str(file))} == authors


def test_a_file_or_a_list_takes_the_place_of_the_bundled_categories(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text('\ufeffcategory_id,category_name\n7,"Tea, Coffee"\n3,Bread\n', encoding="utf-8")
    assert categories(str(file)) == (Category(7, "Tea, Coffee"), Category(3, "Bread"))
    assert categories(("Tea, Coffee", " Bread ")) == (
        Category(1, "Tea, Coffee"),
        Category(2, "Bread"),
    )


def test_the_digest_stands_for_ids_names_and_order():
    tea, bread = Category(1, "Tea"), Category(2, "Bread")
    digests = {
        taxonomy_digest(one)
        for one in [(tea, bread), (bread, tea), (tea,), (Category(1, "Bread"), Category(2, "Tea"))]
    }
    assert len(digests) == 4
    assert taxonomy_digest((tea, bread)) == taxonomy_digest((Category(1, "Tea"), bread))


def test_validate_finds_a_taxonomy_that_cannot_be_used(tmp_path, monkeypatch, printed):
    monkeypatch.chdir(tmp_path)
    task = tmp_path / "mine.yaml"
    task.write_text("task: mine\nextends: gist_synthetic\noptions:\n  taxonomy: none.csv\n")
    said = printed("validate", "mine.yaml", code=2)
    assert said.out == "mine: 1 wrong (mine.yaml)\n"
    assert said.err.startswith("harness: mine.yaml:4:3: none.csv: the taxonomy cannot be read\n")
    (tmp_path / "none.csv").write_text("category_id,category_name\n1,Tea\n")
    assert main(["validate", "mine.yaml"]) == 0

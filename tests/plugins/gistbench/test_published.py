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


def test_tables_3_and_4_are_published_as_results_of_the_tasks_and_no_unknown_one_as_zero():
    table = TABLES.read("scores")
    unknown = [row for row in table.dicts() if None in (row["ig_f1"], row["is"])]
    assert [(row["model"], row["dataset"]) for row in unknown] == [
        ("Llama-3.1-8B", dataset) for dataset in ("synthetic", "kuairec", "mind")
    ]
    assert "dash" in table.notes[0]
    found = GISTBENCH.published()
    assert len(found) == 2 * 8 * 5 - 2 * 3 + 2 * 7 * 2
    one, *_ = [each for each in found if (each.task, each.metric) == ("gist_mind", "is")]
    assert (one.model, one.value, one.source) == ("GPT-OSS-120B", 0.666, "Table 3")
    assert "oracle of the paper's models" in one.comparable_if


def test_tables_agree_with_each_other_and_percentages_with_their_counts():
    agreement, by_model = rows("oracle_agreement"), rows("oracle_by_model")
    assert sum(row["pairs"] for row in agreement) == NUMBERS["oracle_pairs"] == 91_099
    assert NUMBERS["oracle_file_pairs"] == 91_054
    of_oracle = sum(row["models"] * row["pairs"] for row in agreement)
    assert of_oracle == sum(row["verified"] for row in by_model) == 214_378
    assert agreement[0]["models"] == 1
    assert agreement[0]["pairs"] == sum(row["sole"] for row in by_model) == 37_672
    for table, count, total in (
        (agreement, "pairs", 91_099), (by_model, "sole", 91_099), (rows("coverage"), "covered", 325)
    ):  # fmt: skip
        for row in table:
            assert row["share"] == pytest.approx(100 * row[count] / total, abs=0.051)
    for task in ("evidence", "retrieval"):
        shares = [row["share"] for row in rows("rater_splits") if row["task"] == task]
        assert sum(shares) == pytest.approx(100)
        kappas = [row["kappa"] for row in rows("rater_pairs") if row["task"] == task]
        assert sum(kappas) / 6 == pytest.approx(NUMBERS[f"{task}_mean_kappa"], abs=0.006)


def test_the_correlations_of_the_rows_are_not_the_printed_ones():
    def rho(pairs):
        return round(spearmanr(*zip(*pairs, strict=True)).statistic, 2)

    survey = [(statistics.harmonic_mean([row["s_prec"], row["s_rec"]]),
               math.sqrt(row["ig_f1"] * row["is"])) for row in rows("survey")]  # fmt: skip
    assert rho(survey) == NUMBERS["survey_rho_of_rows"] == 0.57
    assert NUMBERS["survey_rho_printed"] == 0.67
    pairs = [(row["elo"], row["ig_f1"]) for row in rows("instruction_following")]
    above = [one for one in pairs if one[0] > 1200]
    upwards = [one for one in pairs if one[0] >= 1200]
    assert (len(pairs), len(above), len(upwards)) == (8, 6, 7)
    assert rho(pairs) == NUMBERS["elo_rho_of_rows"] == 0.55
    assert rho(above) == NUMBERS["elo_rho_above_of_rows"] == -0.09
    assert rho(upwards) == NUMBERS["elo_rho_from_of_rows"] == 0.33
    assert (NUMBERS["elo_rho_printed"], NUMBERS["elo_rho_above_printed"]) == (0.48, -0.1)


def test_the_bundled_taxonomy_holds_the_325_names_of_the_papers_lists_in_order():
    from harness_judges.answers import clean

    known = {one.id: one.name for one in categories(None)}
    assert list(known) == list(range(1, 326))
    assert list(known.values()) == sorted(known.values())
    assert len({clean(name) for name in known.values()}) == 325
    assert known.items() >= {
        1: "A.I. Art", 55: "Children’s Books", 89: "Ecology / Climatology", 325: "eSports",
        93: "Entrepreneurship & Small Business", 113: "Furniture, Home Appliances & Goods",
        166: "Local, Regional or National Cuisine",
    }.items()  # fmt: skip


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
    file, tea, bread = tmp_path / "mine.csv", "Tea, Coffee", "Bread"
    file.write_text('\ufeffcategory_id,category_name\n7,"Tea, Coffee"\n3,Bread\n', encoding="utf-8")
    assert categories(str(file)) == (Category(7, tea), Category(3, bread))
    assert categories((tea, " Bread ")) == (Category(1, tea), Category(2, bread))


def test_the_digest_stands_for_ids_names_and_order():
    tea, bread = Category(1, "Tea"), Category(2, "Bread")
    others = [(bread, tea), (tea,), (Category(1, "Bread"), Category(2, "Tea"))]
    assert len({taxonomy_digest(one) for one in [(tea, bread), *others]}) == 4
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

"""Tables that people lay beside stored runs."""

from functools import partial

import pytest
from builders.texts import write_csv

from harness.analysis.user_tables import names_of, read_figures, read_models
from harness.base.errors import DataError, UsageError
from harness.contracts.task import Column


@pytest.fixture
def figures(tmp_path):
    """A table of figures of models, and where it is."""

    return partial(write_csv, tmp_path / "figures.csv")


def test_models_go_by_their_names_in_small_letters_and_columns_may_be_absent(figures):
    path = figures("who,family", " Ada-7B ,Ada", "ben,")
    columns = {"family": Column(required=False), "licence": Column(required=False)}
    assert read_models(path, columns, model="who") == {
        "ada-7b": {"who": " Ada-7B ", "family": "Ada", "licence": None},
        "ben": {"who": "ben", "family": None, "licence": None},
    }


def test_a_model_that_stands_twice_or_a_table_of_none_is_refused_and_one_without_a_figure_left_out(
    figures,
):
    path = figures("model,Elo", "Ada,1", "ada ,2")
    with pytest.raises(DataError) as told:
        read_figures(path, model="model", column="Elo")
    assert "row 2, column 'model'" in str(told.value)
    found = read_figures(figures("model,Elo", "ada,3", "ben,"), model="model", column="Elo")
    assert found == {"ada": 3.0}
    with pytest.raises(UsageError, match="no row has a figure in a column 'size'") as told:
        read_figures(figures("model,Elo", "ada,3"), model="model", column="size")
    assert "columns model, Elo" in str(told.value)


def test_a_table_may_call_a_model_by_less_than_its_whole_name():
    assert list(names_of("vllm:Org/Ada-7B")) == ["vllm:org/ada-7b", "org/ada-7b", "ada-7b"]

"""Nested values of a cell, read as types, with errors that name the cell."""

import msgspec
import pytest
from harness_perrecbench.data.table_cell import TableCell

from harness.base.errors import DataError


class Rated(msgspec.Struct):
    title: str
    rating: float


class Table:
    def bad(self, row, column, value, expected):
        return DataError("bad", where=f"row {row}, {column}", found=repr(value), expected=expected)


CELL = TableCell(table=Table(), row=7, column="history")


def test_a_list_of_objects_is_read_as_structs():
    assert CELL.read([{"title": "rye", "rating": 4}], Rated) == [Rated("rye", 4.0)]
    assert CELL.read([{"title": "rye", "rating": "4.5"}], Rated, written=True)[0].rating == 4.5


def test_what_does_not_fit_is_named_with_its_cell_and_place():
    with pytest.raises(DataError) as caught:
        CELL.read([{"title": "rye", "rating": 4}, {"title": 5, "rating": 1}], Rated)
    assert (caught.value.where, caught.value.found) == ("row 7, history", "5")
    assert caught.value.expected == (
        "a list of objects with title, rating (Expected `str`, got `int` at [1].title)"
    )
    assert CELL.beside("users").bad(1, "2").where == "row 7, users"

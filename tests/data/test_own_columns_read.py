import pytest
from builders.tables import data_in, refused, table_of, written

from harness.base.errors import DataError
from harness.contracts.task import Column, DataSpec, TableSpec
from harness.data.database import Database

KINDS = ("explicit_positive", "implicit_positive")
COLUMNS = {
    "user": Column(called="customer_id"),
    "kind": Column(one_of=KINDS, values={"like": "explicit_positive", "1": "implicit_positive"}),
    "stars": Column(type="integer", required=False, values={"five": "5", "": "0"}),
}
ROWS = [
    {"user": "c1", "kind": "explicit_positive", "stars": 5},
    {"user": "c2", "kind": "implicit_positive", "stars": 3},
    {"user": "c3", "kind": "implicit_positive", "stars": 0},
]


def table(path, columns=COLUMNS, *, named=()):
    return table_of(path, columns=columns, name="engagements", named=named)


def three(folder, name):
    """The same three rows in each format; the column `user` there is another one."""
    columns = {"customer_id": ["c1", "c2", "c3"], "user": ["x", "x", "x"]}
    if name.endswith(".parquet"):
        columns |= {"kind": ["like", "1", "implicit_positive"], "stars": [5, 3, 0]}
    else:
        columns |= {"kind": ["like", 1, "implicit_positive"], "stars": ["five", 3, ""]}
    return written(folder / name, columns)


def in_database(of):
    database = Database({of.name: of})
    found = database.relation(of.name).order("row")
    return found.project(", ".join(f'"{name}"' for name in of.columns)).fetchall()


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_own_names_and_values_are_read_in_every_way(tmp_path, name):
    read = table(three(tmp_path, name))
    assert [row for _, row in read.rows()] == ROWS
    columns = [batch.columns for batch in read.batches()]
    for column in COLUMNS:
        cells = [cell for batch in columns for cell in batch[column]]
        assert cells == [row[column] for row in ROWS]
    assert in_database(read) == [tuple(row.values()) for row in ROWS]


def test_values_of_json_keep_their_type(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": "five", "b": true, "c": "it\'s"}\n{"a": 3, "b": "no", "c": "x"}\n')
    columns = {
        "a": Column(type="integer", values={"five": "5"}),
        "b": Column(type="boolean", values={"no": "false"}),
        "c": Column(values={"it's": "'it'"}),
    }
    of = table(path, columns)
    rows = [tuple(row.values()) for _, row in of.rows()]
    assert in_database(of) == rows == [(5, True, "'it'"), (3, False, "x")]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_errors_propose_the_same_options_in_bulk(tmp_path, name):
    for columns in (
        {"customer": Column(), "kind": Column()},
        {"kind": Column(one_of=("up", "down"))},
        {"kind": Column(type="integer", values={"like": "V"})},
    ):
        of = table(three(tmp_path, name), columns)
        with pytest.raises(DataError) as caught:
            Database({"engagements": of}).relation("engagements")
        assert str(caught.value) == str(refused(of))


MISSING = {"user_id": Column(), "kind": Column()}
KIND = {"kind": Column(one_of=KINDS)}


@pytest.mark.parametrize(
    ("text", "columns", "named", "hint"),
    [
        ("customer_id,kind\nc1,like\n", MISSING, (), "'customer_id' is the nearest name: if it "
         "is 'user_id', give --columns engagements.user_id=customer_id"),
        ("who,kind\nc1,like\n", MISSING, (),
         "if 'user_id' has another name: --columns engagements.user_id=NAME"),
        ("users id,kind\nc1,like\n", MISSING, (), "'users id' is the nearest name: if it is "
         "'user_id', give --columns 'engagements.user_id=users id'"),
        ("kind\nexplicit\n", KIND, (),
         "if it stands for one of these: --values engagements.kind.explicit=MEANING"),
        ("kind\na dislike\n", KIND, (),
         "if it stands for one of these: --values 'engagements.kind.a dislike=MEANING'"),
        # Tables of tools have no options of a run.
        ("customer_id,kind\nc1,view\n", {"customer": Column(), **KIND}, None,
         "'customer_id' is the nearest name: rename it if it is 'customer'"),
        ("customer_id,kind\nc1,view\n", KIND, None, None),
    ],
)  # fmt: skip
def test_what_does_not_fit_proposes_the_option_of_a_run(tmp_path, text, columns, named, hint):
    (tmp_path / "a.csv").write_text(text)
    assert refused(table(tmp_path / "a.csv", columns, named=named)).hint == hint


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_a_header_has_the_columns_that_a_command_names(tmp_path, name):
    """An object may leave out an optional column, whoever named it."""
    columns = {**COLUMNS, "time": Column(called="wan", required=False)}
    path = three(tmp_path, name)
    assert all(row["time"] is None for _, row in table(path, columns).rows())
    of = table(path, columns, named=("user", "time"))
    if name == "a.jsonl":
        assert all(row["time"] is None for _, row in of.rows())
        return
    assert refused(of).problem == "column 'time' is missing"
    assert refused(of).expected == "'wan'"
    with pytest.raises(DataError, match="column 'time' is missing"):
        in_database(of)


def test_a_column_has_no_name_but_the_one_it_is_called_by_and_no_value_of_another_type(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("user\nu\n")
    error = refused(table(path, {"user": Column(aliases=("who",), called="customer_id")}))
    assert (error.problem, error.expected) == ("column 'user' is missing", "'customer_id'")
    path.write_text("stars\nfive\n")
    error = refused(table(path, {"stars": Column(type="integer", values={"five": "V"})}))
    assert error.problem == (
        "the values of column 'stars' stand for something that is none of its values: "
        "not an integer"
    )
    assert error.found == "V"


def test_other_names_and_values_are_another_fingerprint(tmp_path):
    (tmp_path / "people.csv").write_text("user,kind\nu,like\n")

    def opened(**columns):
        spec = DataSpec(tables={"people": TableSpec(columns=columns)})
        return data_in(tmp_path, spec, shared={})

    plain = opened(user=Column(), kind=Column()).describe()
    alias = opened(user=Column(aliases=("who",)), kind=Column()).describe()
    called = opened(user=Column(called="kind"), kind=Column()).describe()
    meant = opened(user=Column(), kind=Column(values={"like": "5"})).describe()
    prints = [about["fingerprint"] for about in (plain, called, meant)]
    assert len(set(prints)) == 3
    assert alias["fingerprint"] == plain["fingerprint"]
    assert meant["tables"]["people"]["columns"] == {
        "kind": {"called": None, "values": {"like": "5"}}
    }

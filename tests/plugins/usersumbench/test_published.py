"""The paper's tables as they are shipped."""

from harness_usersumbench.paper import TABLES, examples, results


def test_the_four_tables_are_there():
    sources = {TABLES.read(name).source for name in TABLES.names()}
    assert sources == {"Table 1", "Table 2", "Table 3", "Table 4"}
    assert examples() == {"MovieLens": 4297, "Yelp": 6798, "Amazon Review": 5046}


def test_table_4_is_published():
    found = results()
    assert len(found) == 18
    yelp = {one.metric: one.value for one in found if one.task == "usersum_yelp_hc"}
    assert yelp == {"qm": 0.512, "ifm": 0.992, "idm": 4.721}


def test_only_qm_can_be_comparable():
    for one in results():
        assert one.comparable_if.startswith("never: ") == (one.metric != "qm")

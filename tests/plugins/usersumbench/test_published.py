"""The paper's tables as they are shipped."""

from harness_usersumbench.paper import TABLES, examples, results

from harness.registry import load_plugins
from harness.registry.task_catalogue import Catalogue


def test_the_four_tables_are_there():
    sources = {TABLES.read(name).source for name in TABLES.names()}
    assert sources == {"Table 1", "Table 2", "Table 3", "Table 4"}
    assert examples() == {"MovieLens": 4297, "Yelp": 6798, "Amazon Review": 5046}


def test_table_4_is_published_for_existing_tasks():
    found = results()
    assert len(found) == 18
    known = {entry.name for entry in Catalogue(load_plugins()).entries}
    assert {one.task for one in found} <= known
    yelp = {one.metric: one.value for one in found if one.task == "usersum_yelp_hc"}
    assert yelp == {"qm": 0.512, "ifm": 0.992, "idm": 4.721}


def test_only_qm_can_be_comparable():
    for one in results():
        assert one.comparable_if.startswith("never: ") == (one.metric != "qm")

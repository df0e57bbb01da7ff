"""What a stage is where its author says nothing."""

from harness.contracts.stage import Calls


def test_an_item_makes_one_call_unless_its_stage_says_otherwise():
    assert (Calls().least, Calls().most, Calls().times) == (1, 1, "")
    assert Calls(most=3).least == 1
    assert Calls(least=0).most == 1

"""What is said of judges that cannot be made, word for word."""

import pytest

from harness import plugin_manager
from harness.errors import HarnessError
from harness.judging import JudgeParts

CASES = {
    ("lexical", "shares", "1"): """\
the judge 'lexical' has no such argument
  found:    shares
  expected: share""",
    ("lexical", "share", "most"): """\
the judge 'lexical': the share of words that an option must hold makes no sense
  found:    share=most
  expected: a number above 0, at most 1""",
    ("llm", "", ""): """\
the judge 'llm' needs a model
  to do:    name it as `--judge openai:…` or the like""",
    ("panel", "", ""): """\
a panel is of two judges or more
  found:    none
  expected: panel:SPEC+SPEC+…, as in panel:openai:a+openai:b+openai:c""",
}


@pytest.mark.parametrize(("judge", "name", "value"), CASES)
def test_arguments(judge, name, value):
    factory = plugin_manager.load_plugins().judge(judge).factory
    with pytest.raises(HarnessError) as caught:
        factory(JudgeParts(args={name: value} if name else {}))
    assert str(caught.value) == CASES[judge, name, value]


def test_arguments_of_a_judge_that_is_its_model():
    from harness.testing import ScriptedModel

    factory = plugin_manager.load_plugins().judge("llm").factory
    with pytest.raises(HarnessError) as caught:
        factory(JudgeParts(model=ScriptedModel("yes"), args={"tries": "2"}))
    assert str(caught.value) == (
        "the judge 'llm' has no arguments of its own\n"
        "  found:    tries\n"
        "  expected: those of its model: llm:openai:model=NAME"
    )

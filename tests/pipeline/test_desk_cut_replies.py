"""Replies that the token limit cut: what is said of them, and how often they are asked for."""

import pytest
from builders.runs import make_task
from builders.stages import make_benchmark, make_contexts, make_stage, say_stage, words

from harness.contracts.model import Reply, Sampling, Usage
from harness.contracts.outcomes import Parsed, Unreadable
from harness.contracts.task import RoleSpec
from harness.parsing import JsonReader
from harness.pipeline.desk import Binding, why_cut

WIDE = Sampling(max_tokens=800, reasoning_tokens=4096)
NARROW = Sampling(max_tokens=800)
SWITCH = "chat_template_kwargs=enable_thinking=false"


@pytest.fixture
def detail(scripted):
    def of(
        text="", thought=None, *, counted=0, sampling=NARROW, role="candidate", switch=SWITCH,
        asked=False,
    ):  # fmt: skip
        usage = Usage(prompt_tokens=9, completion_tokens=800, reasoning_tokens=counted)
        reply = Reply(text=text, finish="length", usage=usage if counted else None)
        model = scripted("m")
        model.thinking_switch, model.asked_if_thinking = switch, asked
        return why_cut(reply, text, thought, sampling=sampling, model=model, role=role)

    return of


def test_an_answer_that_was_cut_ends_somewhere_and_at_a_limit_that_may_be_raised(detail):
    cut = (
        f"ends in '{'x' * 73} and so' at the limit of 800 tokens (max_tokens); "
        "allow more (--gen_kwargs max_tokens=4896)"
    )
    text = "x" * 100 + " and so"
    assert detail(text) == cut
    room = "4,096 tokens for thinking (among --model_args: thinking=true)"
    assert detail(text, asked=True) == f"{cut}; if it thinks, allow {room}"


def test_a_model_that_was_not_known_to_think_gets_room_by_its_own_argument(detail):
    room = "4,096 tokens for thinking (among --model_args: thinking=true)"
    seen = detail(thought="hmm", asked=True)
    assert f"; allow {room}, or switch thinking off (" in seen
    unseen = detail(asked=True)
    assert f"; allow more (--gen_kwargs max_tokens=4896), or {room}, or switch" in unseen
    assert room not in detail(thought="hmm", asked=True, sampling=WIDE)


def test_thinking_that_took_the_whole_limit_is_said_with_both_cures(detail):
    assert detail(thought="hmm " * 500) == (
        "2,000 characters of thinking spent the limit of 800 tokens (max_tokens); "
        "allow more (--gen_kwargs max_tokens=4896), or switch thinking off "
        "(among --model_args: chat_template_kwargs=enable_thinking=false)"
    )


def test_what_the_server_counted_comes_before_the_length(detail):
    assert detail(thought="hmm", counted=4890, sampling=WIDE, switch=None) == (
        "4,890 tokens of thinking spent the limit of 4,896 tokens (max_tokens 800, "
        "reasoning_tokens 4,096); allow more (--gen_kwargs reasoning_tokens=8192)"
    )


def test_another_role_has_its_own_options(detail):
    assert detail(thought="hmm", sampling=WIDE, role="judge").endswith(
        "allow more (--set roles.judge.sampling.reasoning_tokens=8192), or switch thinking off "
        f"(in the SPEC of the role judge: {SWITCH})"
    )


async def asked(house, model, *, temperature=0.0, tries=5, corrected=False, truncated="fail"):
    """How often one item's question was asked, and the item's outcome."""

    async def insist(item, desk):
        answer = await desk.ask(
            "candidate", "say", {"word": item.word}, read=JsonReader(kind="object"),
            tries=tries, corrected=corrected, truncated=truncated,
        )  # fmt: skip
        return "read" if isinstance(answer, Parsed) else answer

    house.sampling = {"candidate": RoleSpec(sampling={"temperature": temperature})}
    stages = [say_stage(words("it"), insist)]
    records = await house.run(stages, {"candidate": model}, store=False)
    (record,) = records["say"]
    return len(model.asked), record.outcome


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize(("temperature", "times"), [(0.0, 1), (0.1, 1), (0.7, 5)])
async def test_a_cut_question_is_not_asked_again_unless_chance_may_help(
    house, scripted, temperature, times, corrected
):
    model = scripted("m", lambda request: "<think>\nhmm", finish="length")
    count, outcome = await asked(house, model, temperature=temperature, corrected=corrected)
    assert (count, type(outcome), outcome.cause) == (times, Unreadable, "truncated")


@pytest.mark.parametrize("text", ["<think>\nhmm", "", " \n"])
async def test_nothing_is_left_to_read_of_a_reply_that_only_thought(house, scripted, text):
    model = scripted("m", lambda request: text, finish="length")
    count, outcome = await asked(house, model, truncated="read")
    assert (count, outcome.cause) == (1, "truncated")
    assert "the limit of 1,024 tokens (max_tokens)" in outcome.detail


async def test_a_cut_answer_is_still_read_where_the_stage_wants_it(house, scripted):
    model = scripted("m", lambda request: '<think>\nhmm\n</think>\n{"a": 1', finish="length")
    _, outcome = await asked(house, model, truncated="read")
    assert outcome.value == "read"


def context_with(tmp_path, thinking, **binding):
    file = tmp_path / "toy" / "say.candidate.j2"
    file.parent.mkdir(exist_ok=True)
    file.write_text("say")
    stage = make_stage("say", roles=("candidate",))
    bindings = {"candidate": Binding(role="candidate", **binding)}
    (context,) = make_contexts(
        tmp_path, make_task(), make_benchmark(stage), bindings, thinking=thinking
    )
    return context


def test_only_a_model_that_thinks_has_tokens_for_it_and_keys_of_its_own(tmp_path, scripted):
    model = scripted("m")
    plain, thinking = (
        context_with(tmp_path, those, label="m", model=model) for those in ((), (model,))
    )
    assert plain.sampling("candidate", model).limit == 1024
    assert thinking.sampling("candidate", model).limit == 1024 + 4096
    usual = {"temperature": 0.0, "max_tokens": 1024, "top_p": None, "stop": ()}
    assert plain.components["roles"]["candidate"]["sampling"] == usual
    assert thinking.components["roles"]["candidate"]["sampling"] == {
        **usual, "reasoning_tokens": 4096,
    }  # fmt: skip
    assert plain.key != thinking.key


def test_a_panel_says_which_of_its_members_think(tmp_path, scripted):
    one, two = scripted("one"), scripted("two")
    members = tuple(Binding(role="candidate", label=each.name, model=each) for each in (one, two))
    context = context_with(tmp_path, (two,), label="panel", model=None, members=members)
    assert context.sampling("candidate", one).limit == 1024
    assert context.sampling("candidate", two).limit == 5120
    assert context.components["roles"]["candidate"]["thinking"] == ["two"]

import asyncio
import threading
from dataclasses import dataclass, replace

import msgspec
import pytest
from builders.runs import make_task
from builders.stages import Word, make_benchmark, make_contexts, make_stage, say_stage, words
from harness_judges.llm import make as make_llm
from harness_judges.panel import make as make_panel

from harness.base.errors import TaskError, UsageError
from harness.contracts.identity import Identity
from harness.contracts.judge import JudgeParts, Member, Select, Selected, Vote
from harness.contracts.model import Message, Reply, Sampling, Usage
from harness.contracts.outcomes import NoVerdict, Parsed, Unreadable
from harness.contracts.records import JudgedRecord
from harness.contracts.stage import Stage
from harness.contracts.task import RoleSpec
from harness.parsing import JsonReader
from harness.pipeline.desk import QUICK, Binding, why_cut


class Options(msgspec.Struct, frozen=True):
    window: int = 3
    weight: float = 1e-05
    shown: bool = True


@dataclass(eq=False)
class FakeModel:
    identity: Identity
    concurrency: int = 4
    occupies: str | None = None


@dataclass(eq=False)
class FakeJudge:
    version: int = 2
    name: str = "llm"
    models: tuple[FakeModel, ...] = ()


CANDIDATE = Identity(kind="fake", name="small", details={"revision": "a"})
JUDGE = Identity(kind="fake", name="big", details={"host": "h"}, scope="run")
ASK = make_stage("ask", version=4, roles=("candidate",), options=("window", "weight"))
WEIGH = make_stage("weigh", judges=("judge",), after=("ask",))


@pytest.fixture
def made(tmp_path):
    """The contexts of both stages; with changes to what they are made from."""

    def make(*, prompts=None, roles=None, stages=None, name="t", **changes):
        texts = {
            "ask.candidate": "say it", "weigh.judge": "right?", "other.candidate": "unused",
            **(prompts or {}),
        }  # fmt: skip
        for prompt, text in texts.items():
            file = tmp_path / "toy" / f"{prompt}.j2"
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        task = make_task(
            name, version=changes.pop("task_version", 1), roles=roles or {},
            stages=changes.pop("samplings", {}), tags=changes.pop("tags", ()),
            description=changes.pop("description", ""),
        )  # fmt: skip
        candidate = FakeModel(changes.pop("candidate", CANDIDATE))
        judge = FakeModel(changes.pop("judge", JUDGE))
        adapter = FakeJudge(version=changes.pop("judge_version", 2), models=(judge,))
        label = changes.pop("label", "fake:small")
        benchmark = make_benchmark(
            *(stages or (ASK, WEIGH)), version=changes.pop("benchmark_version", 9), options=Options
        )
        bindings = {
            "candidate": Binding(role="candidate", label=label, model=candidate),
            "judge": Binding(role="judge", label="fake:big", model=judge, judge=adapter),
        }
        usual = {"bindings": bindings, "options": Options(), "seed": 7, "run_id": "monday"}
        return make_contexts(tmp_path, task, benchmark, **{**usual, **changes})

    return make


def test_a_judge_stands_in_the_components_with_its_model(made):
    _, weigh = made()
    assert weigh.components["options"] == {}
    judge = weigh.components["roles"]["judge"]
    assert judge["judge"] == {"name": "llm", "version": 2}
    assert judge["model"] == {
        "kind": "fake", "name": "big", "details": {"host": "h"}, "run": "monday",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        ({"seed": 8}, "both"),
        ({"structured": True}, "both"),
        ({"fresh": True}, "both"),
        ({"options": Options(window=4)}, "ask"),
        ({"options": Options(weight=2e-05)}, "ask"),
        ({"prompts": {"ask.candidate": "say it \n\n"}}, "ask"),
        ({"prompts": {"weigh.judge": "wrong?"}}, "weigh"),
        ({"candidate": Identity(kind="fake", name="small", details={"revision": "b"})}, "ask"),
        ({"judge": Identity(kind="fake", name="huge")}, "weigh"),
        ({"judge_version": 3}, "weigh"),
        ({"roles": {"candidate": RoleSpec(sampling={"temperature": 0.5})}}, "ask"),
        ({"roles": {"judge": RoleSpec(sampling={"max_tokens": 5})}}, "weigh"),
        ({"samplings": {"weigh": {"judge": {"stop": ["\n"]}}}}, "weigh"),
        ({"sampling": {"temperature": 0.5}}, "ask"),
        ({"run_id": "tuesday"}, "weigh"),  # the judge has no revision
        ({"stages": (replace(ASK, version=5), WEIGH)}, "ask"),
        ({"options": Options(shown=False)}, "none"),
        ({"prompts": {"other.candidate": "still unused"}}, "none"),
        ({"name": "another"}, "none"),
        ({"task_version": 2}, "none"),
        ({"benchmark_version": 10}, "none"),
        ({"description": "said better", "tags": ("x",)}, "none"),
        ({"label": "what tables call it"}, "none"),
        ({"samplings": {"ask": {"judge": {"max_tokens": 5}}}}, "none"),
    ],
    ids=str,
)
def test_what_enters_the_key_of_a_stage_and_what_does_not(made, change, changed):
    before, after = made(), made(**change)
    keys = [old.key != new.key for old, new in zip(before, after, strict=True)]
    assert keys == {
        "both": [True, True], "ask": [True, False], "weigh": [False, True], "none": [False, False],
    }[changed]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "shared"),
    [
        ({"seed": 8}, True),
        ({"structured": True}, True),
        ({"options": Options(window=4)}, True),
        ({"prompts": {"ask.candidate": "say it twice"}}, False),
        ({"candidate": Identity(kind="fake", name="huge")}, False),
        ({"sampling": {"temperature": 0.5}}, False),
        ({"fresh": True}, False),
        ({"stages": (replace(ASK, version=5), WEIGH)}, False),
        ({"stages": (replace(ASK, name="beg", prompts=("ask",)), WEIGH)}, False),
    ],
    ids=str,
)
def test_memos_depend_on_who_is_asked_what_and_not_on_options(made, change, shared):
    assert (made()[0].memo_key == made(**change)[0].memo_key) == shared


def test_each_fresh_run_has_keys_of_its_own(made):
    keys = {made(fresh=True, run_id=run)[0].key for run in ("monday", "tuesday")}
    assert len(keys) == 2


def test_sampling_comes_from_role_then_stage_then_for_the_candidate_from_the_command(made):
    roles = {
        "candidate": RoleSpec(sampling={"temperature": 0.1, "max_tokens": 10, "top_p": 0.5}),
        "judge": RoleSpec(sampling={"temperature": 0.2}),
    }
    samplings = {"ask": {"candidate": {"temperature": 0.3, "max_tokens": 30}}}
    ask, weigh = made(roles=roles, samplings=samplings, sampling={"temperature": 0.9})
    model = ask.model("candidate")
    expected = Sampling(temperature=0.9, max_tokens=30, top_p=0.5)
    assert ask.sampling("candidate", model) == expected
    assert weigh.sampling("judge", model) == Sampling(temperature=0.2)


@pytest.mark.parametrize(
    ("given", "found", "expected", "hint"),
    [
        ({"temprature": 0.5}, "temprature",
         "one of temperature, max_tokens, top_p, top_k, presence_penalty, stop, reasoning_tokens",
         "did you mean 'temperature'?"),
        ({"temperature": "hot"}, 'temperature="hot"', "a number", None),
        ({"max_tokens": 1.5}, "max_tokens=1.5", "a whole number", None),
        ({"top_p": 10**400}, f"top_p=1{'0' * 79}…", "Number out of range", None),
    ],
)  # fmt: skip
def test_a_wrong_sampling_is_the_commands_fault_or_the_tasks(made, given, found, expected, hint):
    with pytest.raises(UsageError, match="role 'candidate' in stage 'ask' of") as caught:
        made(sampling=given)
    error = caught.value
    assert (error.where, error.found, error.expected, error.hint) == (
        "--gen_kwargs", found, expected, hint,
    )  # fmt: skip
    with pytest.raises(TaskError, match="role 'judge' in stage 'weigh' of") as caught:
        made(sampling={"temperature": 0.5}, roles={"judge": RoleSpec(sampling=given)})
    assert (caught.value.where, caught.value.found) == (None, found)


PLAIN = "name {{ word }}"
BEGUN = "{% block user %}name {{ word }}{% endblock %}{% block assistant %}{ {% endblock %}"


async def retried(house, model, prompt=PLAIN):
    """The messages of the second try, those of the first left off."""
    house.prompts = {"say.candidate": prompt}
    await asked(house, model, tries=2, corrected=True)
    first, second = (request.messages for request in model.asked)
    assert second[: len(first)] == first
    return second[len(first) :]


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("no idea", "no idea"),
        ("a" * 1000 + "b" * 1_000_000 + "c" * 1000, "a" * 1000 + "\n…\n" + "c" * 1000),
    ],
    ids=["short", "long"],
)
async def test_a_correction_shows_the_answer_and_why_it_cannot_be_used(
    house, scripted, answer, shown
):
    quoted, told = await retried(house, scripted("m", lambda request: answer))
    assert quoted == Message("assistant", shown)
    assert told.role == "user"
    assert told.content.startswith("That cannot be used (no_json: ")


@pytest.mark.parametrize(("finish", "prompt"), [("refused", PLAIN), ("stop", BEGUN)])
async def test_what_was_refused_or_begun_by_the_prompt_is_asked_again_as_it_was(
    house, scripted, finish, prompt
):
    model = scripted("m", lambda request: "I would rather", finish=finish)
    assert await retried(house, model, prompt) == ()


class WaitingReader:
    """Reads a text once the event loop has turned in the meantime; fails after five seconds."""

    schema = None

    def __init__(self) -> None:
        self.turned = threading.Event()

    def __call__(self, text):
        assert self.turned.wait(5), "the event loop stood still"
        return Parsed(text[:1], "text")


class EndingReader:
    """Raises what no future can hold."""

    schema = None

    def __call__(self, text):
        return next(iter(()))


def stage(read, *, meanwhile=lambda: None):
    async def work(item, desk):
        asyncio.get_running_loop().call_later(0.01, meanwhile)
        answer = await desk.ask("candidate", "say", {"word": item.word}, read=read)
        return answer.value if isinstance(answer, Parsed) else answer

    return say_stage(words("it"), work)


async def test_the_event_loop_turns_while_a_long_reply_is_read(house, scripted):
    read = WaitingReader()
    model = scripted("m", lambda request: "x" * (QUICK + 1))
    lines = await house.run([stage(read, meanwhile=read.turned.set)], {"candidate": model})
    assert [line.outcome.value for line in lines["say"]] == ["x"]


async def test_a_reader_that_stops_an_iteration_breaks_its_item_only(house, scripted):
    model = scripted("m", lambda request: "x" * (QUICK + 1))
    run = house.run([stage(EndingReader())], {"candidate": model})
    (line,) = (await asyncio.wait_for(run, 60))["say"]
    assert "StopIteration" in str(line)


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


ROOM = "4,096 tokens for thinking (among --model_args: thinking=true)"


def test_an_answer_that_was_cut_ends_somewhere_and_at_a_limit_that_may_be_raised(detail):
    cut = (
        f"ends in '{'x' * 73} and so' at the limit of 800 tokens (max_tokens); "
        "allow more (--gen_kwargs max_tokens=4896)"
    )
    text = "x" * 100 + " and so"
    assert detail(text) == cut
    assert detail(text, asked=True) == f"{cut}; if it thinks, allow {ROOM}"


def test_thinking_that_took_the_whole_limit_is_said_with_both_cures_of_its_role(detail):
    assert detail(thought="hmm " * 500) == (
        "2,000 characters of thinking spent the limit of 800 tokens (max_tokens); "
        "allow more (--gen_kwargs max_tokens=4896), or switch thinking off "
        f"(among --model_args: {SWITCH})"
    )
    # What the server counted comes before the length.
    assert detail(thought="hmm", counted=4890, sampling=WIDE, switch=None) == (
        "4,890 tokens of thinking spent the limit of 4,896 tokens (max_tokens 800, "
        "reasoning_tokens 4,096); allow more (--gen_kwargs reasoning_tokens=8192)"
    )
    # A model that was not known to think gets room by its own argument.
    assert f"; allow {ROOM}, or switch thinking off (" in detail(thought="hmm", asked=True)
    unseen = detail(asked=True)
    assert f"; allow more (--gen_kwargs max_tokens=4896), or {ROOM}, or switch" in unseen
    assert ROOM not in detail(thought="hmm", asked=True, sampling=WIDE)
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
        return f"read, cut {answer.truncated}" if isinstance(answer, Parsed) else answer

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


@pytest.mark.parametrize(("finish", "cut"), [("length", True), ("stop", False)])
async def test_who_reads_a_cut_answer_all_the_same_learns_that_it_was_cut(
    house, scripted, finish, cut
):
    text = '<think>\nhmm\n</think>\n{"a": 1' + "}" * (not cut)
    model = scripted("m", lambda request: text, finish=finish)
    _, outcome = await asked(house, model, truncated="read")
    assert outcome.value == f"read, cut {cut}"


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


async def choose(item, desk):
    question = Select(prompt="weigh", subject=item.id, options=("x", "y"), labels=("a", "b"))
    verdict = await desk.judge(question)
    return verdict if isinstance(verdict, NoVerdict) else list(verdict.chosen)


CHOOSE = Stage(
    "weigh", item=Word, value=list[int], work=choose, judges=("judge",),
    items=lambda upstreams, data, options: [Word(id=name, user=name) for name in data],
)  # fmt: skip


async def test_every_vote_and_every_call_is_recorded_with_whose_it_is(house, scripted):
    house.prompts = {"weigh.judge": "which of {{ choices }} goes with {{ subject }}?"}
    one, two, three = (
        scripted(name, lambda request, says=says: says)
        for name, says in (("one", "a"), ("two", "a, b"), ("three", "no idea"))
    )
    members = tuple(
        Binding(role="judge", label=each.name, model=each, judge=make_llm(JudgeParts(model=each)))
        for each in (one, two, three)
    )
    judge = make_panel(
        JudgeParts(members=tuple(Member(label=each.label, judge=each.judge) for each in members))
    )
    panel = Binding(role="judge", label="panel", model=None, judge=judge, members=members)
    records = await house.run([CHOOSE], {"judge": panel}, data=["w"])
    [record] = records["weigh"]
    assert record.outcome.value == [0]
    calls = [(call.member, call.text) for call in record.calls]
    assert calls == [("one", "a"), ("two", "a, b"), *[("three", "no idea")] * 3]
    [line] = house.journal(1, "weigh").read_bytes().splitlines()
    [judged] = msgspec.json.decode(line, type=JudgedRecord).judged
    assert (judged.role, judged.prompt, judged.subject) == ("judge", "weigh", "w")
    assert judged.labels == ("a", "b")
    assert judged.verdict == Selected(chosen=(0,), rung="majority", tied=1)
    assert judged.votes[:2] == (
        Vote("one", Selected(chosen=(0,), rung="text")),
        Vote("two", Selected(chosen=(0, 1), rung="text")),
    )
    assert judged.votes[2].member == "three"
    assert isinstance(judged.votes[2].verdict, NoVerdict)

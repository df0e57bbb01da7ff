import re
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from builders.runs import make_task
from builders.stages import make_benchmark, make_stage

from harness.base.errors import PluginError, TaskError, UsageError
from harness.contracts.identity import Identity
from harness.contracts.model import Model
from harness.contracts.task import RoleSpec
from harness.pipeline.roles import RoleBinder, other_players
from harness.pipeline.settings import (
    RunSettings,
    Spec,
    checked_label,
    parse_spec,
    split_members,
    without_labels,
)


@pytest.mark.parametrize(
    ("text", "kind", "args"),
    [
        ("lexical", "lexical", {}),
        ("openai:gpt-4o", "openai", {"model": "gpt-4o"}),
        ("openai:judge", "openai", {"model": "judge"}),
        ("openai:model=a,base_url=http://h:1/v1", "openai", {"model": "a", "base_url": "http://h:1/v1"}),
        ("openai:org/a-b,revision=3", "openai", {"model": "org/a-b", "revision": "3"}),
        ("vllm:pretrained=/a/b,stop=x,y", "vllm", {"pretrained": "/a/b", "stop": "x,y"}),
    ],
)  # fmt: skip
def test_specs(text, kind, args):
    assert parse_spec(text) == Spec(kind=kind, args=args, rest=text.partition(":")[2])


@dataclass(eq=False)
class FakeModel(Model):
    identity: Identity
    occupies: str | None = None

    async def ask(self, request):
        raise AssertionError("nothing is asked here")


@dataclass
class FakeJudge:
    models: tuple[FakeModel, ...]
    name: str = "llm"
    version: int = 1


SHARED = frozenset({"python", "gpus"})
"""What a model of other weights takes over from the candidate."""


def usual(kind, args):
    return FakeModel(Identity(kind=kind, name=args.get("model", kind)))


def strict(kind, args):
    """A kind of model that refuses arguments as the bundled kinds do."""
    if args:
        raise UsageError("no such argument", where="--model_args", found="model")
    return usual(kind, args)


def heavy(kind, args):
    """A model that holds a GPU; of its arguments only name and `dtype` decide who it is."""
    name = args.get("model") or args["pretrained"]
    details = {"dtype": args["dtype"]} if "dtype" in args else {}
    return FakeModel(Identity(kind="fake", name=name, details=details), occupies="gpu")


class FakePlugins:
    """Two kinds of model; `llm` over a model, `words` by rule, `all` of several.

    `make` makes the models, and `seen` has the settings that it was to make them with.
    """

    models = ("fake", "other")
    judges = ("llm", "words", "all")
    broken = ()

    def __init__(self, make=usual):
        self.make, self.seen = make, []

    def model(self, name):
        def make(settings):
            self.seen.append(settings)
            return self.make(name, settings.args)

        return SimpleNamespace(factory=make, shared=SHARED, arguments={"respondent": "a rule"})

    def judge(self, name):
        def make(parts):
            models = [model for member in parts.members for model in member.judge.models]
            return FakeJudge((*models, *([parts.model] if parts.model else [])), name)

        stands = {"llm": "model", "words": "alone", "all": "judges"}
        return SimpleNamespace(factory=make, on=stands[name])


def benchmark(*stages):
    return make_benchmark(
        *(make_stage(name, roles=roles, judges=judges) for name, roles, judges in stages)
    )


NAMED_THEN_JUDGED = benchmark(("name", ("candidate",), ()), ("support", (), ("judge",)))


def task(**roles):
    return make_task(roles=roles)


def bind(settings, wanted=None, bench=NAMED_THEN_JUDGED, plugins=None):
    binder = RoleBinder(settings, plugins or FakePlugins())
    return binder.bind(wanted or task(), bench, bench.stages, bound={})


def settings(**changes):
    return RunSettings(tasks=("t",), model="fake", model_args={"model": "small"}, **changes)


def test_a_model_knows_the_store_and_the_hosts_that_the_command_names_and_no_others():
    asked = RunSettings(
        tasks=("t",), model="fake", model_args={"base_url": "http://Mine:1/v1"},
        roles={"judge": "other:base_url=https://u:p@theirs/v1,model=j"}, file_hosts=("theirs",),
        store=Path("calls.sqlite"),
    )  # fmt: skip
    default = RoleSpec(default="fake:base_url=http://evil/v1")
    bench = benchmark(("name", ("candidate", "writer"), ()), ("support", (), ("judge",)))
    plugins = FakePlugins()
    bind(asked, task(writer=default), bench, plugins)
    assert [one.given_hosts for one in plugins.seen] == [{"mine:1"}] * 3
    assert [one.store for one in plugins.seen] == [asked.store] * 3


@pytest.mark.parametrize(
    ("own", "changes", "limited"),
    [("", {}, False), (",concurrency=64", {}, True), ("", {"concurrency": 64}, True)],
)
def test_a_model_knows_whether_its_concurrency_was_asked_for(own, changes, limited):
    bench = benchmark(("name", ("writer",), ()))
    bound = bind(settings(roles={"writer": f"fake:model=m{own}"}, **changes), bench=bench)
    assert bound["writer"].model.limited is limited


@pytest.mark.parametrize(
    "spec",
    [
        "fake:model=m,base_url=http://evil/v1,api_key_file=~/.cache/huggingface/token",
        "panel:fake:m+fake:model=n,python = /tmp/evil",
    ],
)
def test_a_task_s_own_default_names_no_file_that_is_sent_or_run(spec):
    with pytest.raises(TaskError, match="may not name a file of this machine"):
        bind(settings(), task(judge=RoleSpec(default=spec)))
    bind(settings(roles={"judge": spec.partition("panel:")[2] or spec}), task())


def test_an_unbound_role_of_a_stage_that_data_call_for_says_so_and_what_helps():
    called_for = "this data and these options call for the stage 'profile', which asks the role"
    of = {"when": lambda data, options: True, "roles": ("writer",)}
    why, always = "the data has no profiles", make_stage("always", roles=("writer",))
    hinted, plain = make_stage("profile", role_hint=why, **of), make_stage("profile", **of)
    for stages, told in (([hinted], (called_for, why)), ([plain, always], (None, None))):
        with pytest.raises(UsageError, match="'writer' of task t has no model or judge") as caught:
            bind(settings(), bench=make_benchmark(*stages))
        assert caught.value.expected.startswith("--role writer=SPEC")
        assert (caught.value.found, caught.value.hint) == told


def test_a_role_that_answers_for_another_is_asked_and_one_that_nothing_asks_or_has_is_refused():
    stages = ("name", "candidate"), ("support", "reader"), ("rest", "finder")
    bench = benchmark(*((name, (role,), ()) for name, role in stages))
    binder = RoleBinder(settings(roles={"finder": "other:big"}), FakePlugins())
    bound = binder.bind(task(reader=RoleSpec(same_as="finder")), bench, bench.stages[:2], bound={})
    binder.check_used_roles()
    assert bound["reader"].model.identity.name == "big"
    unasked = RoleBinder(settings(roles={"finder": "other:big"}), FakePlugins())
    unasked.bind(task(), bench, bench.stages[:1], bound={})
    with pytest.raises(UsageError, match="no chosen task asks a 'finder'"):
        unasked.check_used_roles()
    with pytest.raises(UsageError, match="no chosen task has a role 'finder'"):
        unasked.check_known_roles([NAMED_THEN_JUDGED])


def test_a_task_that_speaks_of_a_role_that_there_is_not_is_told_those_there_are():
    with pytest.raises(UsageError, match="a role that its benchmark does not know") as caught:
        bind(settings(roles={"judge": "words"}), task(reader=RoleSpec()))
    assert (caught.value.found, caught.value.expected) == ("reader", "candidate, judge")


@pytest.mark.parametrize(
    ("roles", "default", "reasons"),
    [
        ({}, "other:big", []),
        ({"judge": "other:big"}, "other:big", []),
        ({"judge": "fake:model=/weights/BIG"}, "org/big", []),
        ({"judge": "other:bigger"}, "org/big", ["judged by other:bigger, not by org/big"]),
        ({"judge": "words"}, "org/big", []),
        ({"judge": "other:big"}, "other", []),
        ({"judge": "other:big"}, "fake", ["judged by other:big, not by fake"]),
        (
            {"judge": "all:other:big+fake:b"}, "org/big",
            ["judged by all:other:big+fake:b, not by org/big"],
        ),
        ({"judge": "other:big"}, None, []),
    ],
)  # fmt: skip
def test_another_judge_than_the_task_s_is_named(roles, default, reasons):
    with_default = task(judge=RoleSpec(default=default))
    bound = bind(settings(roles=roles), with_default)
    assert list(other_players(bound, with_default, roles)) == reasons


def test_roles_that_share_a_default_are_named_once_and_models_by_their_role():
    bench = benchmark(("name", ("candidate", "writer"), ()), ("support", (), ("judge", "second")))
    second, pen = RoleSpec(same_as="judge"), RoleSpec(default="org/pen")
    wanted = task(judge=RoleSpec(default="org/big"), second=second, writer=pen)
    for roles, reason in (
        ({"judge": "other:a"}, "judged by other:a, not by org/big"),
        ({"second": "other:a"}, "judged by other:a, not by org/big"),
        ({"writer": "other:a"}, "writer is other:a, not org/pen"),
    ):
        bound = bind(settings(roles=roles), wanted, bench)
        assert other_players(bound, wanted, roles) == (reason,)


@pytest.mark.parametrize(
    ("roles", "says"),
    [
        ({"judge": "llm"}, "needs a model"),
        ({"judge": "word"}, "one of llm, words, all, fake, other\n.*did you mean 'words'"),
        ({"judge": "all:other:a+wrods"}, "did you mean 'words'"),
        ({"judge": "all:other:a+other:a,concurrency=3"}, "twice\n.*other:a and other:a"),
        ({"judge": "all:other:a+all:other:b"}, "a panel as a member"),
        ({"judge": "all:other:a+fake:small"}, "would judge itself in task t\n.*fake:small"),
        ({"judge": "words", "candidate": "other:big"}, "the candidate is given by --model"),
    ],
)
def test_what_cannot_be_bound_is_refused(roles, says):
    with pytest.raises(UsageError) as caught:
        bind(settings(roles=roles))
    assert re.search(says, str(caught.value))


def test_a_default_without_a_kind_is_not_given_what_suits_the_candidates_weights():
    own = "pretrained lora chat_template quantization trust_remote_code tensor_parallel_size"
    args = {**dict.fromkeys(own.split(), "mine"), "python": "p"}
    asked = RunSettings(tasks=("t",), model="fake", model_args=args)
    plugins = FakePlugins()
    bind(asked, task(judge=RoleSpec(default="org/Judge-70B")), plugins=plugins)
    assert {"python": "p", "model": "org/Judge-70B"} in [one.args for one in plugins.seen]


def error_of(wanted, role="judge", **roles):
    asked = RunSettings(tasks=("t",), model="fake", roles=roles)
    binder = RoleBinder(asked, FakePlugins(strict))
    with pytest.raises(UsageError) as caught:
        binder.bind_role(role, wanted, as_judge=True)
    return caught.value


ANOTHER = "--judge SPEC binds another model to this role"


@pytest.mark.parametrize(
    ("role", "roles", "where", "hint"),
    [
        ("judge", {"judge": "fake:big"}, "--judge", None),
        ("verifier", {"judge": "fake:big"}, "--judge", None),
        ("verifier", {"judge": "words", "verifier": "fake:big"}, "--role verifier", None),
        ("judge", {}, "role judge, as fake, the default of t", ANOTHER),
    ],
)
def test_an_argument_that_is_wrong_is_found_where_it_was_given(role, roles, where, hint):
    wanted = task(judge=RoleSpec(default="fake:big=1"), verifier=RoleSpec(same_as="judge"))
    error = error_of(wanted, role, **roles)
    assert (error.where, error.hint) == (where, hint)
    asked = RunSettings(tasks=(), model="fake", roles={"judge": "fake:big"})  # without a task
    with pytest.raises(UsageError) as caught:
        RoleBinder(asked, FakePlugins(strict)).bind_given("judge")
    assert caught.value.where == "--judge"


def test_the_name_of_a_model_alone_comes_with_the_way_to_its_server():
    for role, option in (("judge", "--judge"), ("verifier", "--role verifier")):
        asked = settings(roles={role: "xyzzy"})
        with pytest.raises(UsageError, match="no plugin offers a judge") as caught:
            bind(asked, task(), benchmark(("s", (), (role,))))
        assert caught.value.hint == (
            f"a server's model is named by {option} openai:base_url=URL,model=xyzzy"
        )


def test_a_candidate_that_answers_by_rule_has_no_place_for_the_tasks_judge():
    wanted = task(judge=RoleSpec(default="org/Judge-70B"), verifier=RoleSpec(same_as="judge"))
    for role in ("judge", "verifier"):
        assert str(error_of(wanted, role)) == (
            "role judge: no server is known for the default model of t\n"
            "  found:    org/Judge-70B\n"
            "  expected: --judge SPEC, as in --judge openai:model=NAME,base_url=URL\n"
            "  to do:    --judge lexical judges by word overlap, for demos and tests"
        )


def test_a_role_may_share_another_and_circles_are_named():
    both = benchmark(("a", ("candidate", "verifier"), ()))
    bound = bind(settings(), task(verifier=RoleSpec(same_as="candidate")), both)
    assert bound["verifier"].model is bound["candidate"].model
    circle = task(a=RoleSpec(same_as="b"), b=RoleSpec(same_as="a"))
    with pytest.raises(UsageError, match="a -> b -> a"):
        bind(settings(), circle, benchmark(("s", ("a", "b"), ())))


@pytest.mark.parametrize(
    ("stages", "notes"), [(1, ["no chosen task asks a judge, so --judge is not used"]), (2, [])]
)
def test_a_judge_whose_stage_is_left_out_is_noted(stages, notes):
    binder = RoleBinder(settings(roles={"judge": "words"}), FakePlugins())
    binder.check_known_roles([NAMED_THEN_JUDGED])
    binder.bind(task(), NAMED_THEN_JUDGED, NAMED_THEN_JUDGED.stages[:stages], bound={})
    binder.check_used_roles()
    assert binder.notes == notes


def test_a_factory_that_makes_no_model_is_named():
    plugins = FakePlugins(lambda kind, args: SimpleNamespace(ask=None))
    with pytest.raises(PluginError, match="kind 'fake' returned no model") as caught:
        bind(settings(), bench=benchmark(("name", ("candidate",), ())), plugins=plugins)
    expected = "an instance of a subclass of harness.Model"
    assert (caught.value.found, caught.value.expected) == ("SimpleNamespace", expected)


def both(judge, *, make=heavy, **candidate):
    """What is bound to a candidate `small` and this judge, which may be the same; the notes."""
    args = {"model": "small", **candidate}
    asked = RunSettings(
        tasks=("t",), model="fake", model_args=args, roles={"judge": judge}, allow_self_judging=True
    )
    binder = RoleBinder(asked, FakePlugins(make))
    bound = binder.bind(task(), NAMED_THEN_JUDGED, NAMED_THEN_JUDGED.stages, bound={})
    return bound, binder.notes


def test_roles_of_one_identity_that_hold_one_resource_share_a_model_and_say_so():
    bound, notes = both("fake:pretrained=small", tensor_parallel_size="4")
    assert bound["judge"].model is bound["candidate"].model
    assert bound["judge"].judge.models == (bound["candidate"].model,)
    assert notes == [
        "judge: has the weights of candidate, so one engine serves both, with the "
        "arguments of candidate"
    ]


def test_roles_that_ask_one_model_in_batches_ask_it_with_the_same_arguments():
    def patient(kind, args):
        model = usual(kind, args)
        model.patient = True
        return model

    with pytest.raises(UsageError, match="one list of batches serves both"):
        both("fake:small,batch=only", make=patient, batch="true")


def test_the_candidates_arguments_open_an_engine_whatever_the_other_role_is_called():
    given = {"model": "small", "tensor_parallel_size": "4"}
    roles = {"annotator": "fake:small"}
    asked = RunSettings(tasks=("t",), model="fake", model_args=given, roles=roles)
    bench = benchmark(("mark", ("annotator", "candidate"), ()))
    bound = bind(asked, bench=bench, plugins=FakePlugins(heavy))
    assert bound["annotator"].model is bound["candidate"].model


@pytest.mark.parametrize(
    ("found", "candidate", "expected"),
    [
        (
            "tensor_parallel_size=2",
            {"tensor_parallel_size": "4"},
            "tensor_parallel_size=4, as for candidate, or no tensor_parallel_size=",
        ),
        ("max_model_len=9", {}, "no max_model_len=, or max_model_len=9 for candidate as well"),
    ],
)
def test_a_role_may_not_open_an_engine_otherwise_than_the_one_it_shares_it_with(
    found, candidate, expected
):
    with pytest.raises(UsageError, match="one engine serves both") as caught:
        both(f"fake:small,{found}", **candidate)
    assert caught.value.where == "role judge, as fake:small"
    assert (caught.value.found, caught.value.expected) == (found, expected)


@pytest.mark.parametrize(
    ("judge", "given"),
    [("fake:small,dtype=float32", {}), ("fake:small,base_url=b", {"make": usual, "base_url": "a"})],
    ids=["other answers", "beside each other"],
)
def test_models_that_are_not_merged(judge, given):
    bound, notes = both(judge, **given)
    assert bound["judge"].model is not bound["candidate"].model
    assert notes == []


def test_a_judge_that_is_the_candidate_is_refused_before_the_way_it_opens():
    """Whoever mended the arguments first would be told of the judge all the same."""
    asked = settings(roles={"judge": "fake:pretrained=small,tensor_parallel_size=2"})
    for bench in (NAMED_THEN_JUDGED, benchmark(("mark", (), ("judge",)))):
        with pytest.raises(UsageError, match="the candidate would judge itself"):
            bind(asked, bench=bench, plugins=FakePlugins(heavy))
    allowed = settings(roles={"judge": "fake:small"}, allow_self_judging=True)
    assert bind(allowed)["judge"].judge is not None


PANEL = "all:other:a,base_url=http://h:1/v1+other:b,base_url=http://h:2/v1+words"


def test_a_panel_is_of_the_judges_behind_it_each_with_its_own_arguments():
    bound = bind(settings(roles={"judge": PANEL}))["judge"]
    assert bound.label == "all:other:a+other:b+words"
    assert [model.identity.name for model in bound.models] == ["a", "b"]
    assert (bound.model, bound.judge.name) == (None, "all")
    assert bound.key("run") == {
        "judge": {"name": "all", "version": 1},
        "members": {
            "other:a": {
                "judge": {"name": "llm", "version": 1},
                "model": {"kind": "other", "name": "a", "details": {}},
            },
            "other:b": {
                "judge": {"name": "llm", "version": 1},
                "model": {"kind": "other", "name": "b", "details": {}},
            },
            "words": {"judge": {"name": "words", "version": 1}},
        },
    }


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("openai:a+openai:b", ("openai:a", "openai:b")),
        ("openai:command-r++openai:b,x=1,y=2", ("openai:command-r+", "openai:b,x=1,y=2")),
        ("openai:one\\+two+words", ("openai:one+two", "words")),
        ("openai:a+7b", ("openai:a+7b",)),
        ("", ()),
    ],
)
def test_members_are_parted_by_a_plus_before_a_letter(text, parts):
    assert split_members(text) == parts


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("openai:m", "m"),
        ("openai:model=m,label=ckpt-a,revision=r", "ckpt-a"),
        ("openai:model=org/m,revision=r1", "org/m@r1"),
        (
            "vllm:pretrained=org/m,revision=0123456789abcdef0123456789abcdef01234567",
            "org/m@0123456",
        ),
        ("vllm:pretrained=/ckpts/run7/step-1000", "step-1000"),
        ("vllm:pretrained=./step-1000/", "step-1000"),
        ("vllm:pretrained=org/model", "org/model"),
        ("baseline", "baseline"),
    ],
)
def test_a_model_is_shown_by_label_or_by_name_and_revision(text, label):
    spec = parse_spec(text)
    assert spec.shown == label
    assert "label" not in spec.args


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("openai:model=m", "openai:model=m"),
        ("openai:model=m,label=a", "openai:model=m"),
        ("openai:label=a,model=m", "openai:model=m"),
        ("lexical:label=a", "lexical"),
        ("panel:openai:a,label=x+openai:label=y,model=b", "panel:openai:a+openai:model=b"),
        ("openai:model=m,base_url=http://h/?label=a", "openai:model=m,base_url=http://h/?label=a"),
    ],
)
def test_a_label_is_no_part_of_what_was_asked(text, without):
    assert without_labels(text) == without


@pytest.mark.parametrize("label", ["latest", "a b", "", "x" * 41, "a/b", "-a"])
def test_what_cannot_be_a_label_is_refused(label):
    with pytest.raises(UsageError, match="this cannot be a label"):
        checked_label(label, "--name")

"""Commands as lm-evaluation-harness spells them: taken, taken with a note, or refused with why."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from harness.errors import UsageError

SHORT = {
    "-C": "config", "-t": "tasks", "-M": "model", "-a": "model_args", "-L": "limit",
    "-c": "use_cache", "-f": "num_fewshot", "-b": "batch_size", "-o": "output_path",
    "-s": "log_samples", "-E": "samples", "-v": "verbosity", "-w": "write_out",
    "-x": "predict_only",
}  # fmt: skip

NOTED = {
    "log_samples": "the run folder holds every sample anyway",
    "batch_size": "servers make their own batches; --concurrency says how many requests they have",
    "max_batch_size": "servers make their own batches",
    "apply_chat_template": "models are always asked by chat, and the server's template is applied",
    "cache_requests": "prompts are made anew each time, which takes no time worth keeping",
    "verbosity": "--quiet shows less",
    "write_out": "--dry_run shows the first prompts; the run folder holds all of them",
    "show_config": "the run folder's manifest.json holds every setting of every task",
    "confirm_run_unsafe_code": "nothing that a model writes is ever run",
}
"""Options that change no result here; what their users are told."""

SWITCHES = frozenset({"log_samples", "write_out", "show_config", "confirm_run_unsafe_code"})
"""Those of them that take no value."""

REFUSED = {
    "config": "settings in harness.toml, which is read from the working folder",
    "device": "what starts the server chooses: CUDA_VISIBLE_DEVICES, or --model_args of its kind",
    "samples": "--limit N, which draws by --seed; --data FILE holds the people you choose",
    "check_integrity": "`harness validate TASK`",
    "system_instruction": "a prompt of the task's own, under `prompts` in its file",
    "fewshot_as_multiturn": "a prompt of the task's own with the examples in it",
    "wandb_args": "--json, or the run folder's summary.json",
    "wandb_config_args": "--json, or the run folder's manifest.json",
    "trackio_args": "--json, or the run folder's summary.json",
    "hf_hub_log_args": "the run folder, which can be copied anywhere",
    "predict_only": "a run that scores too; `harness score RUN` scores its answers again",
    "trust_remote_code": "--model_args trust_remote_code=true, of kinds that start a server",
    "metadata": "--set OPTION=VALUE",
}
"""Options that would change what is done; what to say instead."""

CHAT_KINDS = ("local-chat-completions", "openai-chat-completions")
COMPLETION_KINDS = ("local-completions", "openai-completions")
CHAT_PATH = "/chat/completions"
ARGUMENTS = {"num_concurrent": "concurrency"}
SAMPLING = {"max_gen_toks": "max_tokens", "until": "stop"}

_NUMBER = re.compile(r"-\d")


@dataclass
class Respelt:
    """The arguments as the harness has them, and what their user should know."""

    arguments: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def respelt(arguments: Sequence[str], known: Collection[str]) -> Respelt:
    """A command in the harness's own spelling; UsageError for what means nothing here.

    `known` are the options that a run has, which go before any of these.
    """
    words = list(arguments)
    if words[:1] == ["ls"]:
        return _listing(words)
    if words[:1] == ["validate"]:
        return _validation(words)
    if words[:1] == ["run"]:
        words = words[1:]
        if words and not words[0].startswith("-"):
            raise UsageError(
                "`harness run` takes options alone", found=words[0], expected="--model …, --tasks …"
            )
    options = _options(words)
    chat = any(name == "model" and values[:1] and values[0] in CHAT_KINDS
               for name, values, _ in options)  # fmt: skip
    done = Respelt()
    for name, values, written in options:
        if name == "model_args" and chat:
            _given(name, [_renamed(_joined(values), _chat_arguments, done)], done)
        elif name in _READERS:
            _READERS[name](values, done)
        elif name in known or not (name in NOTED or name in REFUSED):
            done.arguments += written
        else:
            _take_or_refuse(name, values, done)
    return done


def _take_or_refuse(name: str, values: Sequence[str], done: Respelt) -> None:
    if name in REFUSED:
        raise _refusal(f"--{name}", values, REFUSED[name])
    if name == "apply_chat_template" and values:
        raise _refusal("--apply_chat_template", values, "--model_args chat_template=FILE of vllm")
    if name in SWITCHES:
        done.arguments += values  # words that belong nowhere: for the parser to refuse
    done.notes.append(f"--{name}: {NOTED[name]}")


def _options(words: Sequence[str]) -> list[tuple[str, list[str], list[str]]]:
    """Each option with its values, and how both were written."""
    found: list[tuple[str, list[str], list[str]]] = []
    for word in words:
        if word in SHORT:
            found.append((SHORT[word], [], [f"--{SHORT[word]}"]))
        elif word.startswith("-") and not _NUMBER.match(word):
            name, equals, value = word.lstrip("-").partition("=")
            found.append((name, [value] if equals else [], [word]))
        elif found:
            found[-1][1].append(word)
            found[-1][2].append(word)
        else:
            found.append(("", [], [word]))
    return found


def _listing(words: Sequence[str]) -> Respelt:
    what = [word for word in words[1:2] if word in ("tasks", "groups", "subtasks", "tags")]
    rest = words[1 + len(what) :]
    if any(not word.startswith("-") for word in rest):
        return Respelt(["tasks", *rest], ["ls: `harness tasks NAME` tells of what is named"])
    notes = ["ls: `harness tasks --all` lists tasks, groups and tags in one"]
    return Respelt(["tasks", "--all", *rest], notes)


def _validation(words: Sequence[str]) -> Respelt:
    """`validate --tasks a,b` as `validate a b`."""
    options = _options(words[1:])
    done = Respelt(["validate"])
    for name, values, written in options:
        if name == "tasks":
            done.arguments += [one for one in _joined(values).split(",") if one]
        else:
            done.arguments += written
    return done


def _joined(values: Sequence[str]) -> str:
    if len(values) == 1:
        return values[0]
    return ",".join(value.strip(",") for value in values)


def _given(name: str, values: Sequence[str], done: Respelt) -> None:
    done.arguments += [f"--{name}={_joined(values)}"] if values else [f"--{name}"]


def _model(values: Sequence[str], done: Respelt) -> None:
    kind = values[0] if values else ""
    if kind in COMPLETION_KINDS:
        instead = "--model openai, by chat, or with endpoint=completions in --model_args"
        raise _refusal(f"--model {kind}", (), instead)
    if kind in CHAT_KINDS:
        done.notes.append(f"--model {kind}: openai")
        values = ["openai", *values[1:]]
    # Only one kind can be given, and whatever follows it is for the parser to refuse.
    done.arguments += [f"--model={values[0]}", *values[1:]] if values else ["--model"]


def _limit(values: Sequence[str], done: Respelt) -> None:
    text = values[0] if values else ""
    if re.fullmatch(r"\d+\.0*", text):
        text = text.partition(".")[0]
    elif re.fullmatch(r"0?\.\d+|\d+\.\d+", text):
        raise _refusal("--limit", values, "a whole number of users or samples, not a share")
    done.arguments += [f"--limit={text}", *values[1:]] if values else ["--limit"]


def _seed(values: Sequence[str], done: Respelt) -> None:
    if values and "," in values[0]:
        raise _refusal("--seed", values, "--seed N: one seed decides every draw")
    done.arguments += [f"--seed={values[0]}", *values[1:]] if values else ["--seed"]


def _output_path(values: Sequence[str], done: Respelt) -> None:
    if values and values[0].endswith(".json"):
        raise _refusal("--output_path", values, "a folder, in which each run has one of its own")
    done.arguments += [f"--output_path={values[0]}", *values[1:]] if values else ["--output_path"]


def _use_cache(values: Sequence[str], done: Respelt) -> None:
    done.notes.append("--use_cache: answers are stored anyway; as --store FILE")
    done.arguments += [f"--store={values[0]}", *values[1:]] if values else ["--store"]


def _num_fewshot(values: Sequence[str], done: Respelt) -> None:
    if list(values) != ["0"]:
        raise _refusal(
            "--num_fewshot", values, "0, or a prompt of the task's own with the examples in it"
        )
    done.notes.append("--num_fewshot: prompts have the examples that their benchmark gives them")


def _gen_kwargs(values: Sequence[str], done: Respelt) -> None:
    _given("gen_kwargs", [_renamed(_joined(values), _sampling, done)] if values else [], done)


def _renamed(
    text: str, rename: Callable[[Mapping[str, str], Respelt], dict[str, str]], done: Respelt
) -> str:
    """Arguments under their names here; the text itself where all of them are the same."""
    from harness.pipeline.roles import parse_args

    given = parse_args(text)
    renamed = rename(given, done)
    if renamed == given:
        return text
    return ",".join(f"{name}={value}" for name, value in renamed.items())


def _chat_arguments(given: Mapping[str, str], done: Respelt) -> dict[str, str]:
    args = _under_names_here("--model_args", given, ARGUMENTS)
    if args.get("base_url", "").endswith(CHAT_PATH):
        args["base_url"] = args["base_url"].removesuffix(CHAT_PATH)
        done.notes.append(f"--model_args: base_url without {CHAT_PATH}")
    if "num_concurrent" in given:
        done.notes.append("--model_args: num_concurrent as concurrency")
    return args


def _sampling(given: Mapping[str, str], done: Respelt) -> dict[str, str]:
    if "do_sample" in given:
        raise _refusal(
            "--gen_kwargs do_sample", [given["do_sample"]],
            "temperature alone: 0 takes the likeliest token, more draws",
        )  # fmt: skip
    done.notes += [f"--gen_kwargs: {name} as {here}" for name, here in SAMPLING.items()
                   if name in given]  # fmt: skip
    return _under_names_here("--gen_kwargs", given, SAMPLING)


def _under_names_here(
    option: str, given: Mapping[str, str], names: Mapping[str, str]
) -> dict[str, str]:
    for name, here in names.items():
        if name in given and here in given:
            raise UsageError(
                f"{option} gives {here!r} twice",
                found=f"{name}={given[name]} and {here}={given[here]}",
            )
    return {names.get(name, name): value for name, value in given.items()}


def _refusal(what: str, values: Sequence[str], instead: str) -> UsageError:
    return UsageError(
        f"{what} of lm-evaluation-harness has no such meaning here",
        found=" ".join(values) or None,
        expected=instead,
        hint="docs/coming-from-lm-eval.md has every option",
    )


_READERS: dict[str, Callable[[Sequence[str], Respelt], None]] = {
    "tasks": lambda values, done: _given("tasks", values, done),
    "model_args": lambda values, done: _given("model_args", values, done),
    "gen_kwargs": _gen_kwargs,
    "model": _model,
    "limit": _limit,
    "seed": _seed,
    "output_path": _output_path,
    "use_cache": _use_cache,
    "num_fewshot": _num_fewshot,
}

"""Commands as lm-evaluation-harness spells them, translated by table or refused with a hint."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.base.errors import UsageError

SHORT = {
    "-C": "config", "-t": "tasks", "-M": "model", "-a": "model_args", "-L": "limit",
    "-c": "use_cache", "-f": "num_fewshot", "-b": "batch_size", "-o": "output_path",
    "-s": "log_samples", "-E": "samples", "-v": "verbosity", "-w": "write_out",
    "-x": "predict_only",
}  # fmt: skip

ACCEPTED = {
    "tasks": "tasks", "model": "model", "model_args": "model_args", "gen_kwargs": "gen_kwargs",
    "limit": "limit", "use_cache": "store",
}  # fmt: skip
"""Options whose values are rewritten, and the option that each becomes."""

LISTS = frozenset({"tasks", "model_args", "gen_kwargs"})
"""Those of them whose values may stand apart, as `--tasks a b`."""

CHAT_KINDS = ("local-chat-completions", "openai-chat-completions")

REWRITTEN = (
    *(("model", f"^{kind}$", "openai", f"--model {kind}: openai") for kind in CHAT_KINDS),
    ("model_args", r"((?:^|,)\s*base_url\s*=[^,]*)/chat/completions\s*(?=,|$)", r"\1",
     "--model_args: base_url without /chat/completions"),
    ("model_args", r"((?:^|,)\s*)num_concurrent\s*=", r"\1concurrency=",
     "--model_args: num_concurrent as concurrency"),
    ("gen_kwargs", r"((?:^|,)\s*)max_gen_toks\s*=", r"\1max_tokens=",
     "--gen_kwargs: max_gen_toks as max_tokens"),
    ("gen_kwargs", r"((?:^|,)\s*)until\s*=", r"\1stop=", "--gen_kwargs: until as stop"),
    ("limit", r"^(\d+)\.0*$", r"\1", ""),
    ("use_cache", "^", "", "--use_cache: answers are stored anyway; as --store FILE"),
)  # fmt: skip
"""Option, pattern in its value, replacement, note; of model_args, for CHAT_KINDS alone."""

IGNORED = {
    "log_samples": "the run folder holds every sample anyway",
    "batch_size": "servers make their own batches; --concurrency says how many requests they have",
    "max_batch_size": "servers make their own batches",
    "apply_chat_template": "models are always asked by chat, and the server's template is applied",
    "cache_requests": "prompts are made anew each time, which takes no time worth keeping",
    "verbosity": "--quiet shows less",
    "write_out": "--dry_run shows the first prompts; the run folder holds all of them",
    "show_config": "the run folder's manifest.json holds every setting of every task",
    "confirm_run_unsafe_code": "nothing that a model writes is ever run",
    "num_fewshot": "prompts have the examples that their benchmark gives them",
}
"""Options that change no result here, and the note on each."""

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
"""Options that would change what is done, and what to write instead."""

REFUSED_VALUES = {
    "model": (r"^(local|openai)-completions$",
              "--model openai, by chat, or with endpoint=completions in --model_args"),
    "limit": (r"^(\.\d+|\d+\.\d*[1-9]\d*)$", "a whole number of users or samples, not a share"),
    "seed": (",", "--seed N: one seed decides every draw"),
    "output_path": (r"\.json$", "a folder, in which each run has one of its own"),
    "num_fewshot": ("^(?!0$)", "0, or a prompt of the task's own with the examples in it"),
    "apply_chat_template": (".", "--model_args chat_template=FILE of vllm"),
    "gen_kwargs": (r"(^|[, ])do_sample\s*=",
                   "temperature alone, without do_sample: 0 takes the likeliest token, more draws"),
}  # fmt: skip
"""Options of which some values are refused: the pattern of these, and what to write instead."""


def translate(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments in the harness's own spelling, and notes for the user.

    Options that no table names stay as they are. UsageError for what is refused.

    >>> translate(["run", "-t", "a", "b", "-v", "INFO"])
    (['--tasks=a,b'], ['--verbosity: --quiet shows less'])
    """
    words = list(arguments)
    if words[:1] == ["ls"]:
        return _listing(words[1:])
    if words[:1] == ["validate"]:
        return _validation(words[1:]), []
    if words[:1] == ["run"]:
        words = words[1:]
        if words and not words[0].startswith("-"):
            raise UsageError(
                "`harness run` takes options alone", found=words[0], expected="--model …, --tasks …"
            )
    options = _options(words)
    chat = any(name == "model" and values[:1] and values[0] in CHAT_KINDS
               for name, values, _ in options)  # fmt: skip
    translated: list[str] = []
    notes: list[str] = []
    for name, values, written in options:
        _check(name, " ".join(values))
        if name in IGNORED:
            notes.append(f"--{name}: {IGNORED[name]}")
            # A switch takes no value: a word behind it is an error, which the parser raises.
            translated += values if name in SWITCHES else []
        elif name in ACCEPTED and not values:
            translated.append(f"--{ACCEPTED[name]}")
        elif name in ACCEPTED:
            value, *others = [_joined(values)] if name in LISTS else values
            for option, pattern, replacement, note in REWRITTEN:
                if option == name and (chat or name != "model_args"):
                    value, count = re.subn(pattern, replacement, value)
                    notes += [note] if count and note else []
            translated += [f"--{ACCEPTED[name]}={value}", *others]
        else:
            translated += written
    return translated, notes


def _check(name: str, value: str) -> None:
    """Raise UsageError for an option, or a value of one, that is refused."""
    pattern, instead = REFUSED_VALUES.get(name, (None, None))
    if name in REFUSED or (pattern and re.search(pattern, value)):
        raise UsageError(
            f"--{name} of lm-evaluation-harness has no such meaning here",
            found=value or None,
            expected=REFUSED.get(name, instead),
            hint="docs/coming-from-lm-eval.md has every option",
        )


def _options(words: Sequence[str]) -> list[tuple[str, list[str], list[str]]]:
    """Name and values of each option, and the words as given with short names written out."""
    found: list[tuple[str, list[str], list[str]]] = []
    for word in words:
        if word in SHORT:
            found.append((SHORT[word], [], [f"--{SHORT[word]}"]))
        elif word.startswith("-") and not re.match(r"-\d", word):
            name, equals, value = word.lstrip("-").partition("=")
            found.append((name, [value] if equals else [], [word]))
        elif found:
            found[-1][1].append(word)
            found[-1][2].append(word)
        else:
            found.append(("", [], [word]))
    return found


def _joined(values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else ",".join(value.strip(",") for value in values)


def _listing(words: list[str]) -> tuple[list[str], list[str]]:
    if words[:1] and words[0] in ("tasks", "groups", "subtasks", "tags"):
        words = words[1:]
    if any(not word.startswith("-") for word in words):
        return ["tasks", *words], ["ls: `harness tasks NAME` tells of what is named"]
    notes = ["ls: `harness tasks --all` lists tasks, groups and tags in one"]
    return ["tasks", "--all", *words], notes


def _validation(words: list[str]) -> list[str]:
    """`validate --tasks a,b` as `validate a b`."""
    translated = ["validate"]
    for name, values, written in _options(words):
        names = [one for one in _joined(values).split(",") if one]
        translated += names if name == "tasks" else written
    return translated

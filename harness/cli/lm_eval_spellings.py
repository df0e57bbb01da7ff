"""Commands in the spelling of lm-evaluation-harness: translated, or refused with a hint."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.base.errors import UsageError
from harness.cli.setting import from_json

SHORT = {
    "-C": "config", "-t": "tasks", "-M": "model", "-m": "model", "-a": "model_args", "-L": "limit",
    "-c": "use_cache", "-f": "num_fewshot", "-b": "batch_size", "-o": "output_path",
    "-s": "log_samples", "-E": "samples", "-v": "verbosity", "-w": "write_out",
    "-x": "predict_only",
}  # fmt: skip

ACCEPTED = {
    "tasks": "tasks", "model": "model", "model_args": "model_args", "gen_kwargs": "gen_kwargs",
    "limit": "limit", "use_cache": "store",
}  # fmt: skip
"""Options whose values are rewritten, and the name of each here."""

ARGUMENTS = frozenset({"model_args", "gen_kwargs"})
"""Accepted options whose value may be a JSON object."""

LISTS = frozenset({"tasks", "model_args", "gen_kwargs"})
"""Accepted options whose values may be separate words, as `--tasks a b`."""

LISTINGS = ("list", "list_groups", "list_subtasks", "list_tags")
"""Values of `--tasks` that list the tasks and run nothing."""

CHAT_KINDS = ("local-chat-completions", "openai-chat-completions")

RETRIES = re.compile(r"(?:^|,)\s*max_retries\s*=([^,]*)")
"""An argument for CHAT_KINDS that is an option here."""

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
"""Option, pattern in its value, replacement, note; `model_args` for CHAT_KINDS only."""

IGNORED = {
    "log_samples": "the run folder always holds every sample",
    "batch_size": "servers make their own batches; --concurrency sets the number of requests",
    "max_batch_size": "servers make their own batches",
    "apply_chat_template": "models are always asked by chat, and the server applies its template",
    "cache_requests": "prompts are rendered for each run, which takes little time",
    "verbosity": "--quiet shows less",
    "write_out": "--dry_run shows the first prompts; the run folder holds all prompts",
    "show_config": "the run folder's manifest.json holds every setting of every task",
    "confirm_run_unsafe_code": "the harness never runs code that a model writes",
    "num_fewshot": "the benchmark sets the examples in its prompts",
}
"""Options that do not change results here, and the note on each."""

SWITCHES = frozenset({"log_samples", "write_out", "show_config", "confirm_run_unsafe_code"})
"""Ignored options that take no value."""

REFUSED = {
    "config": "settings in ./harness.toml",
    "device": "CUDA_VISIBLE_DEVICES, or --model_args of a kind that starts a server",
    "samples": "--limit N, which draws by --seed; for samples of your choice, --data FILE or DIR "
    "with a copy of the data that holds only these",
    "check_integrity": "`harness validate TASK`",
    "system_instruction": "--prompts DIR with copies of the task's prompts that have your text in "
    "{% block system %}; `harness prompts NAME` prints a prompt and names its file",
    "fewshot_as_multiturn": "--prompts DIR with a copy of the task's prompt that has the examples "
    "in it, in {% block user_1 %} and {% block assistant_1 %}",
    "wandb_args": "--json, or the run folder's summary.json",
    "wandb_config_args": "--json, or the run folder's manifest.json",
    "trackio_args": "--json, or the run folder's summary.json",
    "hf_hub_log_args": "the run folder, which can be copied",
    "predict_only": "a run with scores; `harness score RUN` scores its answers again",
    "trust_remote_code": "--model_args trust_remote_code=true, for kinds that start a server",
    "metadata": "--set OPTION=VALUE",
}
"""Options that have no equivalent, and what to use instead."""

REFUSED_VALUES = {
    "model": (r"^(local|openai)-completions$",
              "--model openai for chat, or with endpoint=completions in --model_args"),
    "limit": (r"^(\.\d+|\d+\.\d*[1-9]\d*)$", "a whole number of users or samples, not a share"),
    "seed": (",", "--seed N: one seed decides every draw"),
    "output_path": (r"\.json$", "a folder, in which each run has its own folder"),
    "num_fewshot": ("^(?!0$)", "0, or a prompt of your own with the examples in it"),
    "apply_chat_template": (".", "--model_args chat_template=FILE of vllm"),
    "gen_kwargs": (r"(^|[, ])do_sample\s*=",
                   "temperature without do_sample: 0 takes the likeliest token, more samples"),
}  # fmt: skip
"""Options with values that are refused: the pattern of the values, and what to use instead."""


def translate(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments in the spelling of the harness, and notes for the user.

    They begin with a command, unless that is `run`. Options in none of the tables stay unchanged.
    UsageError for refused options and values.

    >>> translate(["run", "-t", "a", "b", "-v", "INFO"])
    (['--tasks=a,b'], ['--verbosity: --quiet shows less'])
    """
    words = list(arguments)
    if words[:1] == ["ls"]:
        return _ls_to_tasks(words[1:])
    if words[:1] == ["validate"]:
        return _validate(words[1:]), []
    if words[:1] == ["run"]:
        words = words[1:]
        if words and not words[0].startswith("-"):
            raise UsageError(
                "`harness run` takes only options", found=words[0], expected="--model …, --tasks …"
            )
    options = _options(words)
    if any(name == "tasks" and _join(values or [""]) in LISTINGS for name, values, _ in options):
        folders = [one for name, _, written in options if name == "include_path" for one in written]
        return ["tasks", "--all", *folders], ["--tasks list: `harness tasks` lists the tasks too"]
    chat = any(name == "model" and values[:1] and values[0] in CHAT_KINDS
               for name, values, _ in options)  # fmt: skip
    translated: list[str] = []
    notes: list[str] = []
    for name, values, written in options:
        _check(name, " ".join(values))
        if name in IGNORED:
            notes.append(f"--{name}: {IGNORED[name]}")
            # A switch takes no value: the parser raises an error for a word after it.
            translated += values if name in SWITCHES else []
        elif name in ACCEPTED and not values:
            translated.append(f"--{ACCEPTED[name]}")
        elif name in ACCEPTED:
            value, *others = [_join(values)] if name in LISTS else values
            if name in ARGUMENTS and value.lstrip().startswith("{"):
                value = from_json(value, where=f"--{name}", as_yaml=name == "gen_kwargs")
            for option, pattern, replacement, note in REWRITTEN:
                if option == name and (chat or name != "model_args"):
                    value, count = re.subn(pattern, replacement, value)
                    notes += [note] if count and note else []
            if chat and name == "model_args" and (found := RETRIES.search(value)):
                value = RETRIES.sub("", value).lstrip(",")
                others.append(f"--attempts={found[1].strip()}")
                notes.append("--model_args: max_retries as --attempts, the first one included")
            translated += [f"--{ACCEPTED[name]}={value}", *others]
        else:
            translated += written
    return translated, notes


def _check(name: str, value: str) -> None:
    """Raise UsageError for an option or value that is refused."""
    pattern, instead = REFUSED_VALUES.get(name, (None, None))
    if name in REFUSED or (pattern and re.search(pattern, value)):
        raise UsageError(
            f"--{name} of lm-evaluation-harness cannot be used here",
            found=value or None,
            expected=REFUSED.get(name, instead),
            hint="`harness run --help` describes the options of the harness",
        )


def _options(words: Sequence[str]) -> list[tuple[str, list[str], list[str]]]:
    """The name and values of each option, and its words with the short name written out."""
    found: list[tuple[str, list[str], list[str]]] = []
    for word in words:
        if word in SHORT:
            found.append((SHORT[word], [], [f"--{SHORT[word]}"]))
        elif word.startswith("-") and not re.match(r"-\.?\d", word):
            name, equals, value = word.lstrip("-").partition("=")
            found.append((name, [value] if equals else [], [word]))
        elif found:
            found[-1][1].append(word)
            found[-1][2].append(word)
        else:
            found.append(("", [], [word]))
    return found


def _join(values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else ",".join(value.strip(",") for value in values)


def _ls_to_tasks(words: list[str]) -> tuple[list[str], list[str]]:
    if words[:1] and words[0] in ("tasks", "groups", "subtasks", "tags"):
        words = words[1:]
    if any(not word.startswith("-") for word in words):
        return ["tasks", *words], ["ls: `harness tasks NAME` describes the named tasks"]
    notes = ["ls: `harness tasks --all` lists tasks, groups and tags together"]
    return ["tasks", "--all", *words], notes


def _validate(words: list[str]) -> list[str]:
    """`validate --tasks a,b` as `validate a b`."""
    translated = ["validate"]
    for name, values, written in _options(words):
        names = [one for one in _join(values).split(",") if one]
        translated += names if name == "tasks" else written
    return translated

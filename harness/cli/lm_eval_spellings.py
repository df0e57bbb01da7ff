"""Options in the spelling of lm-evaluation-harness: translated, or refused with a hint."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.base.errors import UsageError

SHORT = {
    "-C": "config", "-t": "tasks", "-M": "model", "-m": "model", "-a": "model_args", "-L": "limit",
    "-c": "use_cache", "-f": "num_fewshot", "-b": "batch_size", "-o": "output_path",
    "-s": "log_samples", "-E": "samples", "-v": "verbosity", "-w": "write_out",
    "-x": "predict_only",
}  # fmt: skip

OPTIONS = {"use_cache": "store"}

KINDS = {"local-chat-completions": "openai", "openai-chat-completions": "openai"}

ARGUMENTS = {
    "tasks": {},
    "model_args": {"num_concurrent": "concurrency"},
    "gen_kwargs": {"max_gen_toks": "max_tokens", "until": "stop"},
}
"""Names inside the values of options; these values may be separate words, as `--tasks a b`."""

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
}
"""Options that do not change results here, and the note on each."""

SWITCHES = frozenset(
    {"log_samples", "write_out", "show_config", "confirm_run_unsafe_code", "apply_chat_template"}
)
"""Ignored options that take no value."""

REFUSED = {
    "config": "settings in ./harness.toml",
    "device": "CUDA_VISIBLE_DEVICES, or --model_args of a kind that starts a server",
    "samples": "--limit N, which draws by --seed; for samples of your choice, --data FILE or DIR "
    "with a copy of the data that holds only these",
    "check_integrity": "`harness validate TASK`",
    "system_instruction": "--prompts DIR with copies of the task's prompts that have your text in "
    "{% block system %}; `harness prompts NAME` prints a prompt and names its file",
    "num_fewshot": "--prompts DIR with a copy of the task's prompt that has other examples in it",
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


def translate(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options of a run in the spelling of the harness, and notes for the user.

    Options in none of the tables stay unchanged. UsageError for refused options.

    >>> translate(["run", "-t", "a", "b", "-v", "INFO"])
    (['--tasks=a,b'], ['--verbosity: --quiet shows less'])
    """
    words = list(arguments[1:] if arguments[:1] == ["run"] else arguments)
    if words and not words[0].startswith("-"):
        raise UsageError(
            "`harness run` takes only options", found=words[0], expected="--model …, --tasks …"
        )
    translated: list[str] = []
    notes: list[str] = []
    for name, values, written in _options(words):
        if name in REFUSED:
            raise UsageError(
                f"--{name} of lm-evaluation-harness cannot be used here",
                found=" ".join(values) or None,
                expected=REFUSED[name],
                hint="`harness run --help` describes the options of the harness",
            )
        if name in IGNORED:
            notes.append(f"--{name}: {IGNORED[name]}")
            # A switch takes no value: the parser raises an error for a word after it.
            translated += values if name in SWITCHES else []
        elif name in OPTIONS:
            notes.append(f"--{name}: as --{OPTIONS[name]}")
            translated += [f"--{OPTIONS[name]}", *values]
        elif name == "model" and values[:1] and values[0] in KINDS:
            notes.append(f"--model {values[0]}: {KINDS[values[0]]}")
            translated += ["--model", KINDS[values[0]], *values[1:]]
        elif name in ARGUMENTS and values:
            value = ",".join(one.strip(",") for one in values)
            for old, new in ARGUMENTS[name].items():
                value, count = re.subn(rf'((?:^|,|{{)\s*"?){old}(?="?\s*[=:])', rf"\1{new}", value)
                notes += [f"--{name}: {old} as {new}"] if count else []
            translated.append(f"--{name}={value}")
        else:
            translated += written
    return translated, notes


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

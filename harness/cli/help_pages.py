"""How help is laid out, and the examples that end the page of each command."""

from __future__ import annotations

import argparse
import textwrap

OVERVIEW = """\
usage: harness [run] --model KIND --tasks NAMES [OPTION…], or harness COMMAND …

Find out whether a language model understands people. Try it without a model:
  harness --model baseline --judge lexical --tasks interests --data sample

  harness run --help              the options of a run, and examples
  harness tasks [NAME…]           the tasks and groups there are
  harness validate TASK…|FILE     check task files without running them
  harness show [RUN]              the runs there are, and what one found
  harness score RUN…              score and compare runs, asking no model
  harness analyse [NAME RUN…]     what runs tell beyond their scores
  harness export RUN --out DIR    results as CSV, Parquet or lm-eval's files
  harness data [NAME]             make data or see what it holds
  harness models|judges|prompts|plugins [NAME…]     what is installed
  harness config                  the settings that hold, and where they stand
  harness doctor                  what is in the way of a run; asks nothing
  harness requests … --out FILE   write the next questions down, to be a batch
  harness replies RUN FILE…       take the answers of a batch in
  harness new-plugin NAME         write a package with a benchmark of your own
  harness completion SHELL        completion for bash, zsh or fish
  harness COMMAND --help          more of each; plugins add some, as perrec
"""
"""What `harness --help` prints: one screen of a small terminal."""

EXAMPLES = {
    "tasks": [
        "harness tasks",
        "harness tasks --all",
        "harness tasks 'gist*' tag:example",
        "harness tasks interests",
    ],
    "show": [
        "harness show",
        "harness show RUN",
        "harness show RUN --failures --stage name",
        "harness show RUN --sample person-01",
    ],
    "score": [
        "harness score RUN",
        "harness score runs/* --compare",
        "harness score RUN --set min_support=2",
    ],
    "analyse": ["harness analyse", "harness analyse gist-failure-modes RUN --plot modes.svg"],
    "data": ["harness data", "harness data describe --data sample"],
    "validate": ["harness validate interests", "harness validate my_task.yaml 'perrec*'"],
    "plugins": ["harness plugins", "harness plugins interests", "harness plugins --strict_plugins"],
    "models": ["harness models", "harness models openai"],
    "judges": ["harness judges", "harness judges lexical"],
    "prompts": ["harness prompts 'rate*'", "harness prompts interests/name.candidate"],
    "config": [
        "harness config",
        "harness config --all --model local --limit 20",
        "HARNESS_SEED=7 harness config --json",
    ],
    "doctor": [
        "harness doctor",
        "harness doctor --model openai:small --judge openai:big --ask",
        "harness doctor --json",
    ],
    "requests": ["harness requests --model openai:gpt-x --tasks perrec --out next.jsonl"],
    "replies": ["harness replies RUN answers.jsonl errors.jsonl"],
    "export": [
        "harness export RUN --format parquet --out tables",
        "harness export RUN --format lm-eval --task interests --out results",
    ],
    "new-plugin": ["harness new-plugin my-bench", "harness new-plugin my-bench --stages --into ~"],
    "completion": [
        "source <(harness completion bash)                  # in ~/.bashrc",
        'harness completion zsh > "${fpath[1]}/_harness"',
        "harness completion fish > ~/.config/fish/completions/harness.fish",
    ],
}


class HelpPage(argparse.HelpFormatter):
    """Help in which what has lines of its own keeps them, and all else is wrapped."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return textwrap.indent(text, indent)
        return super()._fill_text(text, width, indent)


def dress(parser: argparse.ArgumentParser, command: str) -> None:
    """Give the page of a command its layout and its examples."""
    parser.formatter_class = HelpPage
    if examples := EXAMPLES.get(command):
        parser.epilog = "\n".join(["examples:", *(f"  {line}" for line in examples)])

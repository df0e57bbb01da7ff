"""The keys of a report: what the short words of a part mean, beneath it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from harness.contracts.outcomes import CAUSES
from harness.contracts.stage import CANDIDATE
from harness.reporting.html.markup import Html, details_html, element, joined
from harness.reporting.html.reported_run import ReportedRun
from harness.scoring.grouping import grouped
from harness.tasks.repeats import task_and_repeat

if TYPE_CHECKING:
    from harness.registry import Plugins

MOST_OPEN = 8
"""More words are shown when the reader asks for them."""

CELL, ENDING = "cell", "ending"
"""Words so plain that they are explained as a whole cell alone, and endings of names of tasks."""

_TAG = re.compile(r"<[^>]*>")
_WHOLE = re.compile(r"<(t[dh]|dfn)\b[^>]*>([^<>]{1,40})</\1>")
_PLAIN = re.compile(r"[a-z]+")


class Word(NamedTuple):
    """What a word means in a benchmark, or in all if that is empty, and where a text has it."""

    shown: str
    means: str
    benchmark: str
    place: str
    kind: str = ""


class KeyWords(tuple[Word, ...]):
    """The words of a report."""

    def of(self, benchmark: str) -> KeyWords:
        """The words of one benchmark, and those of all."""
        return KeyWords(one for one in self if one.benchmark in ("", benchmark))

    def without(self, kind: str) -> KeyWords:
        """All words but those of a kind."""
        return KeyWords(one for one in self if one.kind != kind)

    def key(self, part: Html, said: set[str]) -> Html:
        """The part, and beneath it the meanings of its words that it does not say itself."""
        # Signs that no text has stand around whole cells and names.
        marked = _WHOLE.sub("\x02\\2\x03", part.replace(element("wbr"), ""))
        text = html.unescape(_TAG.sub(" ", marked))
        found: dict[str, dict[str, str]] = {}
        for one in self:
            if not (one.shown in said or one.means in text) and re.search(one.place, text):
                found.setdefault(one.shown, {})[one.benchmark] = one.means
        if not found:
            return part
        said.update(found)
        alike = grouped((_told(meanings), shown) for shown, meanings in found.items())
        pairs = (
            element("div", element("dt", ", ".join(shown)), element("dd", means))
            for means, shown in alike.items()
        )
        words = element("dl", *pairs, class_="key")
        if len(alike) > MOST_OPEN:
            words = details_html(f"What {len(found)} words here mean", words, class_="words")
        return joined([part, words])


def _told(meanings: Mapping[str, str]) -> str:
    """The meanings of a word, each with its benchmark or its tasks if they differ."""
    alike: dict[str, list[str]] = {}
    for of, means in meanings.items():
        alike.setdefault(means, []).extend([of] if of else [])
    if len(alike) == 1:
        return next(iter(alike))
    return "; ".join(f"{means} ({', '.join(of)})" if of else means for means, of in alike.items())


def key_words(runs: Sequence[ReportedRun], plugins: Plugins) -> KeyWords:
    """The words of the benchmarks, metrics, options and judges of some runs."""
    known = {(one.shown, one.benchmark): one for one in _words(runs, plugins)}
    return KeyWords(known.values())


def _words(runs: Sequence[ReportedRun], plugins: Plugins) -> Iterator[Word]:
    given = _options(runs)
    for (benchmark, name), by_task in _described(runs).items():
        means = _told(by_task)
        for option, values in given.get(benchmark, {}).items():
            means = means.replace(f"`{option}`", " or ".join(values))
        # A plain name has an arrow behind it; papers have names in capitals.
        place = rf"\b{name} [↑↓]|{_cell(name)}" if _PLAIN.fullmatch(name) else _any(name)
        yield Word(name, means, benchmark, place)
        heading = name.upper().replace("_", " ")
        yield Word(heading, means, benchmark, _any(heading))
    tasks = {task_and_repeat(one.task)[0] for run in runs for one in run.summaries}
    known = {task.benchmark.name: task.benchmark.words for run in runs for task in run.tasks}
    for benchmark, words in known.items():
        for word, means in words.items():
            if word.startswith("_"):
                if ending := [name for name in tasks if name.endswith(word)]:
                    yield Word(f"…{word}", means, benchmark, _any(*ending), ENDING)
            elif _PLAIN.fullmatch(word):
                yield Word(word, means, benchmark, _cell(word), CELL)
            else:
                yield Word(word, means, benchmark, _any(word))
    players = (one for run in runs for each in run.summaries for one in each.roles.items())
    for name in dict.fromkeys(name for role, name in players if role != CANDIDATE):
        if name in plugins.judges and (about := plugins.judges[name].description):
            yield Word(name, f"judge: {about}", "", _any(name))
    for cause, means in CAUSES.items():
        plain = rf"/{cause}\b|\b{cause} \d"
        yield Word(cause, means, "", plain if _PLAIN.fullmatch(cause) else _any(cause))


def _described(runs: Iterable[ReportedRun]) -> dict[tuple[str, str], dict[str, str]]:
    found: dict[tuple[str, str], dict[str, str]] = {}
    for summary in (summary for run in runs for summary in run.summaries):
        task = task_and_repeat(summary.task)[0]
        for name, result in summary.metrics.items():
            if result.description:
                found.setdefault((summary.benchmark, name), {})[task] = result.description
    return found


def _any(*words: str) -> str:
    return rf"(?<![\w|])(?:{'|'.join(map(re.escape, words))})(?![\w|])"


def _cell(word: str) -> str:
    return f"\x02{word}\x03"


def _options(runs: Iterable[ReportedRun]) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for task in (task for run in runs for task in run.tasks):
        of_benchmark = found.setdefault(task.benchmark.name, {})
        for name, value in msgspec.to_builtins(task.options).items():
            values = of_benchmark.setdefault(name, [])
            if str(value) not in values:
                values.append(str(value))
    return found

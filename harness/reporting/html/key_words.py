"""The keys of a report: what the short words of a part mean, beneath it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from harness.analysis.metric_texts import with_values
from harness.contracts.outcomes import CAUSES
from harness.contracts.stage import CANDIDATE
from harness.reporting.html.markup import Html, element, joined
from harness.reporting.html.reported_run import ReportedRun
from harness.tasks.repeats import task_and_repeat

if TYPE_CHECKING:
    from harness.registry import Plugins

MOST_OPEN = 8
"""More words are shown when the reader asks for them."""

Meanings: TypeAlias = Mapping[str, Mapping[str, str]]
"""By word and benchmark what it means; the benchmark is empty for words of all."""

_TAG = re.compile(r"<[^>]*>")
_CELL = re.compile(r"<t[dh]\b[^>]*>([^<>]{1,40})</t[dh]>")
_TOKEN = re.compile(r"[\w|]+")
_COUNTED = re.compile(r"/(\w+)|\b(\w+) \d")
_ARROWED = re.compile(r"(\w+) [↑↓]")
_DEFINED = re.compile(r"<dfn>([^<>]+)</dfn>")
_FOLDED = re.compile(r"<details\b[^>]*>(?:(?!<details\b).)*?</details>", re.DOTALL)
_PLAIN = re.compile(r"[a-z]+")


@dataclass(frozen=True, kw_only=True)
class KeyWords:
    """The words of a report, each with its meanings by benchmark.

    `anywhere` are words that are explained wherever they stand, `cells` those that are so plain
    that they are explained only where they are a whole cell. `metrics` are known by their name or,
    if that is one plain word, by the arrow behind it or the mark `dfn` of a rule, and by their name
    in capitals, as in papers; `causes` by the number behind them or the stage before them. `endings` are those of the names
    `tasks`.
    """

    anywhere: Meanings = field(default_factory=dict)
    cells: Meanings = field(default_factory=dict)
    causes: Meanings = field(default_factory=dict)
    metrics: Meanings = field(default_factory=dict)
    endings: Meanings = field(default_factory=dict)
    tasks: frozenset[str] = frozenset()

    def of(self, benchmark: str) -> KeyWords:
        """The words of one benchmark, and those of all."""
        wanted = ("", benchmark)
        return KeyWords(
            tasks=self.tasks,
            **{
                kind: {
                    word: kept
                    for word, meanings in getattr(self, kind).items()
                    if (kept := {of: one for of, one in meanings.items() if of in wanted})
                }
                for kind in ("anywhere", "cells", "causes", "metrics", "endings")
            },
        )

    def key(self, part: Html, said: set[str]) -> Html:
        """The part, and beneath it the meanings of its words that it does not say itself.

        What is folded is left out, and so are the words that were `said` in parts before.
        """
        found = [one for one in self._found(part) if one[0] not in said]
        said.update(word for word, _ in found)
        if not found:
            return part
        pairs = (element("div", element("dt", word), element("dd", means)) for word, means in found)
        words = element("dl", *pairs, class_="key")
        if len(found) > MOST_OPEN:
            title = element("summary", f"What {len(found)} words here mean")
            words = element("details", title, words, class_="words")
        return joined([part, words])

    def _found(self, part: Html) -> Iterator[tuple[str, str]]:
        named = part.replace(element("wbr"), "")
        whole, open_part = _text(named), _without_folded(named)
        text = _text(open_part)
        tokens = set(_TOKEN.findall(text))
        marked = {*_ARROWED.findall(text), *_DEFINED.findall(open_part)}
        counted = {one for both in _COUNTED.findall(text) for one in both}
        cells = {html.unescape(cell) for cell in _CELL.findall(open_part)}
        names = tokens & self.tasks
        for metric, meanings in self.metrics.items():
            plain = _PLAIN.fullmatch(metric) is not None
            if metric in (marked if plain else tokens):
                yield from _pairs(metric, meanings, whole)
            elif (heading := _heading(metric)) in text and _whole_word(heading, text):
                yield from _pairs(heading, meanings, whole)
        for ending, meanings in self.endings.items():
            if any(name.endswith(ending) for name in names):
                yield from _pairs(f"…{ending}", meanings, whole)
        for word, meanings in self.anywhere.items():
            if word in tokens or (not _TOKEN.fullmatch(word) and word in text):
                yield from _pairs(word, meanings, whole)
        for kind, found in ((self.cells, cells), (self.causes, counted)):
            for word, meanings in kind.items():
                if word in found:
                    yield from _pairs(word, meanings, whole)


def _pairs(word: str, meanings: Mapping[str, str], whole: str) -> Iterator[tuple[str, str]]:
    """The word with its meanings that a text does not give itself."""
    if means := [one for one in _told(meanings) if one not in whole]:
        yield word, "; ".join(means)


def _whole_word(word: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(word)}\b", text) is not None


def _heading(metric: str) -> str:
    """The name of a metric in the tables of papers: `IG F1` for ig_f1."""
    return metric.upper().replace("_", " ")


def _text(part: str) -> str:
    return html.unescape(_TAG.sub(" ", part))


def _without_folded(part: str) -> str:
    """The part without what a reader must open, the innermost first."""
    found = 1
    while found:
        part, found = _FOLDED.subn("", part)
    return part


def _told(meanings: Mapping[str, str]) -> list[str]:
    """The meanings of a word, each with its benchmark if they differ."""
    if len({*meanings.values()}) == 1:
        return [next(iter(meanings.values()))]
    return [f"{meaning} ({of})" if of else meaning for of, meaning in meanings.items()]


def key_words(runs: Sequence[ReportedRun], plugins: Plugins) -> KeyWords:
    """The words of the benchmarks, metrics, options and judges of some runs."""
    anywhere: dict[str, dict[str, str]] = {}
    cells: dict[str, dict[str, str]] = {}
    endings: dict[str, dict[str, str]] = {}
    causes: dict[str, dict[str, str]] = {}
    for word, meaning in CAUSES.items():
        (causes if _PLAIN.fullmatch(word) else anywhere)[word] = {"": meaning}
    benchmarks = {task.benchmark.name: task.benchmark for run in runs for task in run.tasks}
    for benchmark in benchmarks.values():
        for word, meaning in benchmark.words.items():
            plain = cells if _PLAIN.fullmatch(word) else anywhere
            place = endings if word.startswith("_") else plain
            place.setdefault(word, {})[benchmark.name] = meaning
    for name in _judges(runs):
        if name in plugins.judges and (about := plugins.judges[name].description):
            anywhere[name] = {"": f"judge: {about}"}
    metrics: dict[str, dict[str, str]] = {}
    given = _options(runs)
    for run in runs:
        for summary in run.summaries:
            of = summary.benchmark
            for name, result in summary.metrics.items():
                if result.description:
                    text = with_values(result.description, given.get(of, {}))
                    metrics.setdefault(name, {})[of] = text
    names = {task_and_repeat(one.task)[0] for run in runs for one in run.summaries}
    return KeyWords(
        anywhere=anywhere, cells=cells, causes=causes, metrics=metrics, endings=endings,
        tasks=frozenset(names),
    )  # fmt: skip


def _judges(runs: Iterable[ReportedRun]) -> Iterator[str]:
    """The names of those that play a role other than the candidate's."""
    for run in runs:
        for summary in run.summaries:
            yield from (name for role, name in summary.roles.items() if role != CANDIDATE)


def _options(runs: Iterable[ReportedRun]) -> dict[str, dict[str, list[str]]]:
    """By benchmark and option the values that the tasks of the runs have."""
    found: dict[str, dict[str, list[str]]] = {}
    for task in (task for run in runs for task in run.tasks):
        of_benchmark = found.setdefault(task.benchmark.name, {})
        for name, value in msgspec.to_builtins(task.options).items():
            values = of_benchmark.setdefault(name, [])
            if str(value) not in values:
                values.append(str(value))
    return found

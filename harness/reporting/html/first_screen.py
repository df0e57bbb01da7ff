"""The first screen of a report: the answer in a line or two, what was measured, and a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from harness.comparison.document import Difference
from harness.contracts.stage import CANDIDATE
from harness.reporting.comparison_tables import p_value, size_of
from harness.reporting.html.markup import Html, details_html, element, joined
from harness.reporting.html.provenance import chosen_of
from harness.reporting.html.report_html import in_words, notes_html
from harness.reporting.html.reported_run import ReportedRun
from harness.reporting.html.result_lines import Line, conditions_of, lines_of, matrix_html
from harness.reporting.html.run_differences import Differences, Established, untested_pairs
from harness.reporting.tables import data_name
from harness.scoring.grouping import grouped
from harness.scoring.summary import TaskSummary, main_metrics
from harness.tasks.repeats import task_and_repeat

CONFIDENCE = 0.95
"""The confidence of intervals where no task is finished."""

FEW_TASKS = 4
"""What more tasks ask is shown when the reader asks for it."""


def first_screen(runs: Sequence[ReportedRun], found: Differences) -> Html:
    """The verdict, the stamp, what was measured on whom, and the answer in one table."""
    lines = lines_of(runs, found)
    asked = element("p", "No task of these runs is finished.", class_="note")
    if measured := _measured(runs):
        pairs = (joined([element("dt", name), about]) for name, about in measured)
        about = element("dl", *pairs, class_="measured")
        few = len(measured) <= FEW_TASKS
        asked = details_html("What each task asks, and of whom", about, open=few)
    table = matrix_html(runs, lines, untested_pairs(found.untested))
    return joined([
        verdict_html(runs, lines, found), _stamp(runs),
        element("div", table, _notes(runs, lines), class_="results"),
        asked,
    ])  # fmt: skip


def _notes(runs: Sequence[ReportedRun], lines: Sequence[Line]) -> Html:
    metrics = (one for run in runs for each in run.summaries for one in each.metrics.values())
    confidences = sorted({metric.confidence for metric in metrics}) or [CONFIDENCE]
    surely = " or ".join(f"{confidence:.0%}" for confidence in confidences)
    bound = " or ".join(f"{1 - confidence:.3g}" for confidence in confidences)
    which = ", as the task says" if len(confidences) > 1 else ""
    notes = [
        f"In brackets is the {surely} interval of each value alone, over people or what the "
        "section of the benchmark names; ↑ means that more is better, ↓ that less is. Underlined "
        "is the best value of a row, if it was tested against the others and stays the best "
        "however lost units count and on the units that both runs have; in bold if established as "
        "better than each other run with a value, also without lost units. A difference is "
        "established if its interval leaves out 0 and its p "
        f"value after Holm, which is raised for the number of tests, is below {bound}{which}. The "
        "first metric of a task decides which value is best there.",
        "n is how many units, such as people, were asked about. A value says how many of them were "
        "lost and why, and leaves them out unless it says as what they count.",
    ]
    if any(one.lost for line in lines for one in line.values.values()):
        notes.append(
            "A unit is lost if nothing that a model answered about it could be used. A value may "
            "also lack parts of its units, such as one of several questions about a person, while "
            "no unit is missing; one reply that was not read may cost several parts."
        )
    if any(one.repeats > 1 for line in lines for one in line.values.values()):
        notes.append(
            "×2 is the mean over two repeats, and counts each unit twice. The figures of each "
            "benchmark, and comparisons with a run without repeats, are of the first one alone."
        )
    conditions = conditions_of(lines)
    notes += [f"({at}) A run may stand next to these if: {why}." for why, at in conditions.items()]
    return notes_html(notes)


def _stamp(runs: Sequence[ReportedRun]) -> Html | None:
    """The warning above everything, with the runs and tasks that each reason is of."""
    because: dict[str, dict[str, set[str]]] = {}
    finished: dict[str, set[str]] = {}
    for run in runs:
        for summary in run.summaries:
            task = task_and_repeat(summary.task)[0]
            finished.setdefault(run.label, set()).add(task)
            for why in summary.not_comparable_because:
                because.setdefault(why, {}).setdefault(run.label, set()).add(task)
    if not because:
        return None
    lines = []
    for why, whose in because.items():
        named = [
            label if tasks == finished[label] else f"{label} on {', '.join(sorted(tasks))}"
            for label, tasks in whose.items()
        ]
        first, *others = whose.values()
        if whose.keys() == finished.keys() and all(tasks == first for tasks in others):
            named = [f"on {', '.join(sorted(first))}"]
        of = "" if whose == finished else f" ({'; '.join(named)})"
        lines.append(element("li", f"{in_words(why)}{of}"))
    title = element("strong", "NOT COMPARABLE with published results")
    return element("div", title, element("ul", *lines), class_="stamp", role="note")


def _measured(runs: Sequence[ReportedRun]) -> list[tuple[str, Html]]:
    first: dict[str, tuple[ReportedRun, TaskSummary]] = {}
    for run in runs:
        for summary in run.summaries:
            first.setdefault(task_and_repeat(summary.task)[0], (run, summary))
    found = []
    for name, (run, summary) in first.items():
        like = [
            each for one in runs for each in one.summaries
            if task_and_repeat(each.task)[0] == name and each.roles.keys() >= summary.roles.keys()
        ]  # fmt: skip
        about = str(run.manifest.tasks[summary.task].definition.get("description", ""))
        others = [
            f"{role}: {', '.join(dict.fromkeys(each.roles[role] for each in like))}"
            for role in summary.roles
            if role != CANDIDATE
        ]
        chosen = chosen_of(run.manifest.tasks[summary.task].data)
        for main in main_metrics(summary.main, summary.metrics)[:1]:
            result = summary.metrics[main]
            many = result.n + sum(result.missing.values())
            of = f" of {summary.units:,}" if many != summary.units else ""
            but = " (the others do not count in this metric)" if of else ""
            chosen.append(f"n of {main}: {many:,}{of} units{but}")
        facts = [*chosen, f"data: {data_name(summary.data)}", *others]
        small = element("span", f"{'; '.join(facts)}.", class_="note")
        found.append((name, element("dd", f"{about} ", small)))
    return found


FEW_NAMED = 4
"""More tasks than this are counted, and not named."""

UNDECIDED = "No model can be chosen on this alone"


def verdict_html(runs: Sequence[ReportedRun], lines: Sequence[Line], found: Differences) -> Html:
    """The verdict, and what limits it."""
    limits = [element("li", one) for one in _limits(runs, lines, found)]
    answer, why = verdict(runs, lines, found)
    return element(
        "div",
        element("p", element("strong", answer), class_="answer"),
        element("p", why) if why else None,
        element("ul", *limits) if limits else None,
        class_="verdict",
    )


def verdict(
    runs: Sequence[ReportedRun], lines: Sequence[Line], found: Differences
) -> tuple[str, str]:
    """Whether a model can be chosen, and why: who leads on how many tasks, and what of it is sure.

    The second text is empty if there is nothing to compare.
    """
    if len(runs) < 2:
        return f"One run, of {runs[0].label}: there is nothing to compare it with.", ""
    tasks = [
        line
        for line in lines
        if line.first and line.metric and not line.is_group and len(line.order()) > 1
    ]
    if not tasks:
        return "No task is finished by two of these runs: there is nothing to compare.", ""
    leads = Counter(leader for line in tasks if (leader := line.best) is not None)
    most = max(leads.values(), default=0)
    first = [label for label in leads if leads[label] == most]
    unsure = sum(line.is_open for line in tasks)
    if not first:
        leading = "No run is alone in the lead on any task"
        leading += f", {unsure:,} of {len(tasks):,} open" if unsure else ""
    elif len(tasks) == 1:
        leading = f"The value of {first[0]} is best on {tasks[0].name}"
    else:
        named = sorted((run.label for run in runs), key=lambda label: -leads[label])
        led = {label: [line.name for line in tasks if line.best == label] for label in named}
        counts = [f"that of {label} on {leads[label]:,}{_names(led[label])}" for label in named]
        counts[0] = (
            f"By the first metric of each task, the value of {named[0]} is best on {most:,} of "
            f"{len(tasks):,} tasks{_names(led[named[0]])}"
        )
        ties = len(tasks) - leads.total() - unsure
        counts += [f"{ties:,} tied" if ties else "none tied"]
        leading = ", ".join([*counts, *([f"{unsure:,} open"] if unsure else [])])
    answer, sure = _established(runs, first, found)
    return answer, f"{leading}; {sure}."


def _established(
    runs: Sequence[ReportedRun], first: Sequence[str], found: Differences
) -> tuple[str, str]:
    """Whether the comparisons are enough to choose the first, and how many are established."""
    every = [*found.tested()]
    if not every:
        why = f" ({found.problems[0].rstrip('.')})" if found.problems else ""
        return f"{UNDECIDED}.", f"no difference was tested{why}"
    sure = [*found.established()]
    are = "is" if len(sure) == 1 else "are"
    counted = f"{len(sure):,} of {len(every):,} comparisons {are} established after Holm"
    if len(every) == 1:
        known = [_size(every[0][1]), *(each.without for each in sure if each.without)]
        counted = f"the difference {'is' if sure else 'is not'} established ({'; '.join(known)})"
    elif 0 < len(sure) <= 2:
        named = (
            (f"{each.task}, {each.metric}: {each.winner} is better than {each.loser}", each.known)
            for each in sure
        )
        counted += f" ({'; '.join(', '.join(filter(None, one)) for one in named)})"
    elif shaky := sum(not each.holds for each in sure):
        counted += f", {shaky:,} of them not without the units that one of the two runs lost"
    if why := _why_not(runs, first, sure):
        return f"{UNDECIDED}: {why}.", counted
    if len(every) == 1:
        return f"{first[0]} is better than {sure[0].loser}.", counted
    other = "the other run" if len(runs) == 2 else "each other run"
    as_better = f"{first[0]} is established as better than {other} in some metric"
    return f"{as_better}, and as worse in none.", counted


def _why_not(runs: Sequence[ReportedRun], first: Sequence[str], sure: Sequence[Established]) -> str:
    """Why the run that leads on most tasks cannot be chosen; empty if it can."""
    if len(first) != 1:
        return f"{_listed(first)} lead on equally many tasks" if first else "no run leads on a task"
    (best,) = first
    won = [each for each in sure if each.winner == best]
    if worse := next((each for each in sure if each.loser == best), None):
        return f"{best} leads, but {worse.winner} is better on {worse.task} ({worse.metric})"
    beaten = {best, *(each.loser for each in won if each.holds)}
    left = [run.label for run in runs if run.label not in beaten]
    shaky = " without lost units" if {each.loser for each in won} & {*left} else ""
    as_better = f"not established as better than {_listed(left)} in any metric{shaky}"
    return f"{best} leads, but is {as_better}" if left else ""


def _size(each: Difference) -> str:
    if each.value is None or each.interval is None:
        return each.no_interval or "the value of one is undefined"
    return f"{size_of(each)}{'' if each.p_holm is None else f', p {p_value(each.p_holm)}'}"


def _limits(
    runs: Sequence[ReportedRun], lines: Sequence[Line], found: Differences
) -> Iterator[str]:
    ruled = [
        run.label
        for run in runs
        if any(run.manifest.by_rule(task, CANDIDATE) for task in run.manifest.tasks)
    ]
    if ruled:
        every = len(ruled) == len(runs) > 1
        who = "Every model here" if every else _listed(ruled)
        are = "is a stand-in" if every or len(ruled) == 1 else "are stand-ins"
        yield f"{who} {are} for a language model, about which the values say nothing."
    tasks = [line for line in lines if line.first and not line.is_group and line.order()]
    beaten = grouped((rule.name, line.name) for line in tasks for rule in line.beaten_by)
    for rule_name, names in beaten.items():
        on = _of(names, len(tasks))
        than = "has a better value than every model"
        yield f"The baseline {rule_name}, without a model, {than} on {on}."
    moved = [line.name for line in tasks if line.is_open]
    if moved:
        yield (
            f"On {_of(moved, len(tasks))} no run is counted as best: its lead was not tested, "
            "depends on how lost units count, or is lost on the units that both runs have."
        )
    if apart := untested_pairs(found.untested):
        named = _of([*apart], len(tasks))
        yield f"Not tested: {named}; “What to look at next” says why."


def _of(names: Sequence[str], of: int) -> str:
    return names[0] if len(names) == 1 else f"{len(names):,} of {of:,} tasks{_names(names)}"


def _names(names: Sequence[str]) -> str:
    return f" ({', '.join(names)})" if 0 < len(names) <= FEW_NAMED else ""


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))

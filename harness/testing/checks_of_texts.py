"""What can be checked of a plugin without running it: what it registers, its tasks, its prompts."""

from __future__ import annotations

import asyncio
import functools
import math
from collections.abc import Callable, Iterator

from harness.errors import HarnessError
from harness.plugin_manager import CHOSEN
from harness.testing.findings import Check, Finding
from harness.testing.scripted import ScriptedModel, offered
from harness.testing.trial import Trial


def loads(trial: Trial) -> Iterator[Finding]:
    """The plugin loads, its hooks are hooks, its names are its own, its factories make things."""
    one = trial.subject
    where = f"entry point {one.point.name} = {one.point.value}"
    for broken in one.plugins.broken:
        if (broken.entry_point, broken.distribution) == (one.name, one.distribution):
            yield Finding(
                check="loads", where=where, problem=broken.traceback.strip(),
                to_do="mend what the traceback ends with",
            )  # fmt: skip
            return
    if one.loaded is None:
        yield Finding(
            check="loads", where=where, problem=f"it is left out by {CHOSEN}",
            to_do=f"name it there too, or run the tests without {CHOSEN}",
        )  # fmt: skip
        return
    for problem in one.plugins.problems_of(one.loaded):
        yield Finding(
            check="loads", where=where, problem=problem,
            to_do="spell hooks as harness/hookspecs.py does; begin names with the plugin's",
        )  # fmt: skip
    yield from _factories(trial)


def _factories(trial: Trial) -> Iterator[Finding]:
    one, plugins = trial.subject, trial.subject.plugins
    factories: dict[str, Callable[[], object]] = {
        **{
            f"benchmark {name}": functools.partial(plugins.benchmark, name)
            for name in one.benchmarks
        },
        **{f"analysis {n}": plugins.analyses[n].factory for n in one.of(plugins.analyses)},
        **{
            f"tool {' '.join(n)}": plugins.data_tools[n].factory for n in one.of(plugins.data_tools)
        },
        **{
            f"respondent {'/'.join(n)}": plugins.respondents[n].factory
            for n in one.of(plugins.respondents)
        },
    }
    for what, factory in factories.items():
        try:
            made = factory()
        except Exception as error:  # foreign code, and the others are still to be made
            yield Finding(
                check="loads", where=what,
                problem=f"its factory raised {type(error).__name__}: {error}",
                to_do="register a function that takes nothing and gives the thing itself",
            )  # fmt: skip
            continue
        if what.startswith("respondent") and not callable(made):
            yield Finding(
                check="loads", where=what, problem=f"its factory gave {made!r}, no function",
                to_do="register a function that gives the respondent: `lambda: respond`",
            )  # fmt: skip


def tasks(trial: Trial) -> Iterator[Finding]:
    """Every task file is in order, and every benchmark has a task with a sample."""
    from harness.cli.validate import Checker
    from harness.tasks.load import shown

    one = trial.subject
    folder = one.plugins.package_of(one.benchmarks[0]) if one.benchmarks else None
    for problem in one.catalogue.problems:
        if folder is not None and (str(folder) in problem or shown(folder) in problem):
            yield Finding(
                check="tasks", where=one.package, problem=problem,
                to_do="mend the file, or give the task a name of its own",
            )  # fmt: skip
    checker = Checker(one.plugins, one.catalogue)
    for entry in one.entries:
        for document in checker.documents(entry.name):
            for error in checker.errors(document):
                yield Finding(
                    check="tasks", where=document.name, problem=str(error),
                    to_do=f"`harness validate {document.name}` shows the line",
                )  # fmt: skip
    for name in one.benchmarks:
        if not any(task.benchmark == name and task.data.sample for task in trial.tasks):
            yield Finding(
                check="tasks", where=f"benchmark {name}", problem="no task of it has a sample",
                to_do="put a few rows into the package and name them under data.sample: nobody "
                "can try the benchmark else, and no check can run it",
            )  # fmt: skip


def prompts(trial: Trial) -> Iterator[Finding]:
    """Every prompt is a stage's, and renders with the variables that it is given."""
    from harness.pipeline.preparation import prompt_folders
    from harness.prompting import Templates

    one = trial.subject
    templates = Templates(prompt_folders(one.plugins))
    for name in one.benchmarks:
        stages = one.plugins.benchmark(name).stages
        asked = {
            f"{prompt}.{role}"
            for stage in stages
            for prompt in stage.templates
            for role in (*stage.roles, *stage.judges)
        }
        for prompt in templates.names(name):
            where = f"prompts/{name}/{prompt}.j2"
            if prompt not in asked:
                yield Finding(
                    check="prompts", where=where, problem="no stage asks with this prompt",
                    to_do=f"name it as one of {', '.join(sorted(asked))}, or begin its name with _",
                )  # fmt: skip
                continue
            text, _, role = prompt.rpartition(".")
            if not templates.need(name, text, role).variables:
                yield Finding(
                    check="prompts", where=where, problem="it shows nothing of the item",
                    to_do="use the variables that the stage gives it",
                )  # fmt: skip
    yield from _rehearsed(trial)


def _rehearsed(trial: Trial) -> Iterator[Finding]:
    from harness.pipeline.rehearsal import rehearse
    from harness.pipeline.settings import make_settings

    judge = ScriptedModel(name="judge")
    for tried in trial.tried:
        players = tried.others(judge=judge.spec, other="baseline")
        settings = make_settings(
            {"tasks": tried.names, "model": "baseline", "roles": players, "data": "sample"}
        )
        try:
            with offered((judge,)):
                forecast = asyncio.run(rehearse(settings, trial.subject.plugins))
        except HarnessError as error:
            yield Finding(
                check="prompts", where=f"benchmark {tried.benchmark.name}", problem=str(error),
                to_do="give the prompt every variable it names, or drop the variable",
            )  # fmt: skip
            continue
        for stage in forecast.stages:
            for role in stage.roles:
                if not any(message.content.strip() for message in role.first_prompt):
                    yield Finding(
                        check="prompts", where=f"{stage.task}/{stage.stage}",
                        problem=f"the {role.role} was asked nothing in a rehearsal over the sample",
                        to_do="have the sample and the baseline's answers reach this stage",
                    )  # fmt: skip


def metrics(trial: Trial) -> Iterator[Finding]:
    """Every metric says what it is, and what it counts at worst is a number."""
    for name in trial.subject.benchmarks:
        benchmark = trial.subject.plugins.benchmark(name)
        for metric, told in benchmark.metrics.items():
            where = f"metric {metric} of {name}"
            if not told.description.strip():
                yield Finding(
                    check="metrics", where=where, problem="it has no description",
                    to_do="say in one line what the number is: Metric(description=…)",
                )  # fmt: skip
            if told.worst is not None and not math.isfinite(told.worst):
                yield Finding(
                    check="metrics", where=where, problem=f"at worst it counts {told.worst}",
                    to_do="give a finite number, or worst=None where no value is worst",
                )  # fmt: skip


TEXT_CHECKS: dict[str, Check] = {
    check.__name__: check for check in (loads, tasks, prompts, metrics)
}

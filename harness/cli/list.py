"""`harness list KIND`: the models, judges, embedders, prompts, plugins and analyses installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import HarnessError, UnknownName, UsageError, did_you_mean, one_of
from harness.base.resources import top_level
from harness.cli.command import (
    Command,
    CommandGroup,
    Row,
    argument,
    epilog,
    errors_to,
    json_option,
    option,
    print_error,
    print_json,
    print_rows,
    print_sections,
)
from harness.cli.tools import usable
from harness.prompts import Templates
from harness.registry import (
    ANY_BENCHMARK,
    BrokenPlugin,
    DataToolRegistration,
    EmbedderRegistration,
    JudgeRegistration,
    LoadedPlugin,
    MetricRegistration,
    ModelRegistration,
    Origin,
    Plugins,
    Registration,
    Registry,
    RespondentRegistration,
    load_plugins,
)
from harness.reporting.text import clean_text
from harness.scoring.grouping import grouped
from harness.tasks.load import shown

if TYPE_CHECKING:
    from harness.registry.task_catalogue import Entry

Kind = ModelRegistration | JudgeRegistration | EmbedderRegistration


WRAPS = {
    "model": "a model: {name}:openai:model=NAME,base_url=URL",
    "judges": "judges: {name}:openai:model=A,base_url=URL+openai:model=B,base_url=URL",
}
"""What a judge wraps, and how its SPEC names it."""


@click.group(
    "list", cls=CommandGroup, subcommand_metavar="KIND [NAME…]",
    epilog=epilog(
        "harness list models",
        "harness list judges lexical",
        "harness list plugins interests",
        "harness list prompts 'rate*'",
    ),
)  # fmt: skip
def list_() -> None:
    """List what is installed of one KIND: models, judges, embedders, prompts, plugins, analyses.
    With a NAME, show that one in full; `harness list KIND --help` says more.
    """
    ctx = click.get_current_context()
    if ctx.invoked_subcommand is None:
        kinds = ", ".join(list_.list_commands(ctx))
        raise UsageError("KIND is missing", expected=f"one of {kinds}")


def _add_kind(of: str, *, example: str) -> None:
    @list_.command(
        name=f"{of}s", cls=Command, epilog=epilog(f"harness list {of}s {example}"),
        help=f"List the kinds of {of}, or show the NAME of one with the meaning of its arguments.",
    )  # fmt: skip
    @argument(
        "name", metavar="NAME", required=False, help="one kind, with its arguments",
        candidates=f"{of}_kinds",
    )  # fmt: skip
    @json_option
    def show(name: str | None, json: bool) -> None:
        plugins = load_plugins()
        registry: Registry[str, Any] = getattr(plugins, f"{of}s")
        find: Callable[[str], Kind] = getattr(plugins, of)
        kinds: Sequence[Kind] = [find(name)] if name else usable(registry)
        if json:
            print_json({f"{of}s": [_kind_document(one) for one in kinds]})
        elif name:
            (kind,) = kinds
            wraps = WRAPS.get(getattr(kind, "on", ""), "").format(name=kind.name)
            about = {
                "about": kind.description,
                "plugin": f"{kind.origin.plugin} of {kind.origin.distribution}",
                "wraps": wraps,
            }
            arguments = [*kind.arguments.items()]
            rows = [(title, text) for title, text in about.items() if text]
            print_sections([(kind.name, rows), ("arguments", arguments)])
            if not arguments:
                print("  its plugin declares no arguments")
        elif kinds:
            rows = []
            for kind in kinds:
                taken = f"arguments {', '.join(kind.arguments)}" if kind.arguments else ""
                parts = [kind.description, taken, f"plugin {kind.origin.plugin}"]
                rows.append((kind.name, "; ".join(filter(None, parts))))
            print_rows(rows)
        else:
            print("  no installed plugin has one")


_add_kind("model", example="openai")
_add_kind("judge", example="lexical")
_add_kind("embedder", example="hashing")


def _kind_document(kind: Kind) -> dict[str, Any]:
    wraps = getattr(kind, "on", None)
    return {
        "name": kind.name,
        "plugin": kind.origin.plugin,
        "distribution": kind.origin.distribution,
        "description": kind.description,
        "arguments": dict(kind.arguments),
        **({} if wraps is None else {"on": wraps}),
    }


@list_.command(
    cls=Command, epilog=epilog("harness list plugins", "harness list plugins --strict_plugins")
)
@argument(
    "names", metavar="NAME", nargs=-1, help="a plugin or a distribution",
    candidates="plugin_names",
)  # fmt: skip
@json_option
@option(
    "--strict_plugins", is_flag=True,
    help="fail if a plugin is broken, a hook is misspelt or a name is registered twice",
)  # fmt: skip
def plugins(names: Sequence[str], json: bool, strict_plugins: bool) -> None:
    """List the installed plugins and what each registered; broken plugins come first. For each
    NAME, show everything that the plugin registered, or its traceback.
    """
    plugins = load_plugins()
    everything: list[Origin] = [*plugins.broken, *plugins.loaded, *plugins.left_out]
    known = {word for one in everything for word in (one.plugin, one.distribution)}
    listed = f"one of {', '.join(sorted({one.plugin for one in everything}))}"
    for name in names:
        one_of(name, known, f"there is no plugin {name!r}", UnknownName, listed=listed)
    chosen = [one for one in everything if not names or {one.plugin, one.distribution} & {*names}]
    if json:
        print_json(_plugins_document(plugins, chosen))
    elif names:
        print_sections(section for one in chosen for section in _plugin_page(one, plugins))
    else:
        left_out = [(one.plugin, _origin(one)) for one in plugins.left_out]
        print_sections([
            ("broken", [(one.plugin, f"{_origin(one)}; {one.error}")
                        for one in plugins.broken]),
            ("plugins", [(one.plugin, _plugin_summary(one, plugins))
                         for one in plugins.loaded]),
            ("left out by HARNESS_PLUGINS", left_out),
        ])  # fmt: skip
        print_error(*plugins.problems)
    if strict_plugins:
        plugins.check_problems()


def _plugin_summary(plugin: LoadedPlugin, plugins: Plugins) -> str:
    registered = plugins.registered_by(plugin)
    hooks = []
    for hook in plugin.hooks:
        kind = hook.removeprefix("register_")
        hooks.append(hook if kind == hook else f"{hook} ({len(registered.get(kind, ()))})")
    package = top_level(plugin.module)
    tasks = any(one.name == package and one.task_configs is not None for one in plugins.bundles)
    without = "task files only" if tasks else "implements no hook"
    return f"{_origin(plugin)}; {', '.join(hooks) or without}"


def _plugin_page(one: Origin, plugins: Plugins) -> Iterator[tuple[str, list[Row]]]:
    yield "plugin", [(one.plugin, _origin(one))]
    if isinstance(one, LoadedPlugin):
        yield "hooks", [(hook, "") for hook in one.hooks]
        for kind, registrations in plugins.registered_by(one).items():
            rows = [_row(one) for one in registrations]
            if kind == "benchmarks":
                rows = [(name, _about(name, plugins)) for name, _ in rows]
            yield kind.replace("_", " "), rows
        yield "problems", [(line, "") for line in plugins.problems_of(one)]
    elif isinstance(one, BrokenPlugin):
        yield "could not be loaded", [(line, "") for line in one.traceback.rstrip().split("\n")]
    else:
        yield "left out", [("HARNESS_PLUGINS does not name it", "")]


def _row(registration: Registration[Any]) -> Row:
    if isinstance(registration, RespondentRegistration):
        benchmark, prompt, role, name = registration.key
        return f"{benchmark}/{prompt}.{role}", f"{name}, version {registration.version}"
    if isinstance(registration, MetricRegistration):
        return "/".join(registration.key), registration.factory.description
    if isinstance(registration, DataToolRegistration):
        return f"{registration.command} {registration.name}", registration.description
    return registration.name, registration.description


def _about(benchmark: str, plugins: Plugins) -> str:
    try:
        return plugins.benchmark(benchmark).description
    except HarnessError as error:
        return f"cannot be used: {error.problem}"


def _plugins_document(plugins: Plugins, chosen: Sequence[Origin]) -> dict[str, Any]:
    return {
        "plugins": [
            {
                **_source(one),
                "hooks": list(one.hooks),
                "registered": {
                    kind: [
                        dict(zip(("name", "description"), _row(each), strict=True))
                        for each in registrations
                    ]
                    for kind, registrations in plugins.registered_by(one).items()
                },
                "problems": list(plugins.problems_of(one)),
            }
            for one in chosen
            if isinstance(one, LoadedPlugin)
        ],
        "broken": [
            {**_source(one), "error": one.error, "traceback": one.traceback}
            for one in chosen
            if isinstance(one, BrokenPlugin)
        ],
        "left_out": [
            _source(one) for one in chosen if not isinstance(one, (LoadedPlugin, BrokenPlugin))
        ],
        "problems": list(plugins.problems),
    }


def _source(one: Origin) -> dict[str, str]:
    return {name: getattr(one, name) for name in ("plugin", "distribution", "version", "module")}


def _origin(one: Origin) -> str:
    return f"{one.distribution} {one.version}".rstrip() + f", {one.module}"


@list_.command(cls=Command, epilog=epilog("harness list analyses"))
@json_option
def analyses(json: bool) -> None:
    """List the analyses by benchmark; `harness analyse NAME --help` shows the options of one."""
    known = usable(load_plugins().analyses)
    if json:
        fields = ("name", "benchmark", "description")
        print_json({"analyses": [{name: getattr(one, name) for name in fields} for one in known]})
        return
    of = grouped((one.benchmark, (one.name, one.description)) for one in known)
    anything = {ANY_BENCHMARK: "any benchmark"}
    print_sections((anything.get(benchmark, benchmark), of[benchmark]) for benchmark in sorted(of))


NOT_DESCRIBED = "not described; variables.yaml next to the prompt can describe it"


@list_.command(
    cls=Command,
    epilog=epilog("harness list prompts 'rate*'", "harness list prompts interests/name.candidate"),
)
@argument(
    "patterns", metavar="PATTERN", nargs=-1, help="a name, part or glob",
    candidates="prompts",
)  # fmt: skip
@json_option
def prompts(patterns: Sequence[str], json: bool) -> None:
    """List prompts as BENCHMARK/PROMPT.ROLE, all or those that match a PATTERN. For the full name
    of a prompt, show its text, its variables and the tasks that use it.
    """
    from harness.pipeline.preparation import prompt_folders

    plugins = load_plugins()
    templates = Templates(prompt_folders(plugins))
    files = templates.everything()
    full, others = _chosen_prompts(patterns, files)
    pages = (_prompt_page(name, templates, plugins) for name in full)
    if json:
        rest = [_prompt_document(name, files[name], plugins) for name in others]
        print_json({"prompts": [*pages, *rest]})
        return
    for page in pages:
        _print_prompt(page)
    rows = ((*name.split("/", 1), " and ".join(map(shown, files[name]))) for name in others)
    print_sections(grouped((benchmark, (name, at)) for benchmark, name, at in rows).items())
    print_error(*plugins.broken)


def _chosen_prompts(
    patterns: Sequence[str], files: Mapping[str, tuple[Path, ...]]
) -> tuple[list[str], list[str]]:
    if not patterns:
        return [], list(files)
    chosen: dict[str, bool] = {}
    for pattern in patterns:
        name = pattern.removesuffix(".j2")
        exact = [one for one in files if name in (one, one.partition("/")[2])]
        found = exact or [one for one in files if name in one or fnmatchcase(one, name)]
        if not found:
            known = [*files, *(one.partition("/")[2] for one in files)]
            raise UnknownName(
                f"no prompt matches {pattern!r}",
                hint=did_you_mean(name, known) or "`harness list prompts` lists all prompts",
            )
        chosen |= {one: len(exact) == 1 or chosen.get(one, False) for one in found}
    full = [name for name, whole in chosen.items() if whole]
    return full, [name for name in files if not chosen.get(name, True)]


def _prompt_document(name: str, files: Sequence[Path], plugins: Plugins) -> dict[str, Any]:
    benchmark, _, rest = name.partition("/")
    prompt, _, role = rest.rpartition(".")
    packages = [(one.name, one.prompts) for one in plugins.bundles if one.prompts is not None]
    return {
        "name": name,
        "benchmark": benchmark,
        "prompt": prompt,
        "role": role,
        "files": list(map(str, files)),
        "sources": [
            next(name for name, at in packages if file.is_relative_to(at)) for file in files
        ],
    }


def _prompt_page(name: str, templates: Templates, plugins: Plugins) -> dict[str, Any]:
    from harness.prompts.templates import meanings

    benchmark, _, rest = name.partition("/")
    prompt, _, role = rest.rpartition(".")
    template = templates.need(benchmark, prompt, role)
    stages: list[str] = []
    with errors_to(print_error):
        stages += [
            stage.name
            for stage in plugins.benchmark(benchmark).stages
            if prompt in stage.templates and role in (*stage.roles, *stage.judges)
        ]
    return {
        **_prompt_document(name, [template.file], plugins),
        "digest": template.digest,
        "variables": meanings(template.file, template.variables),
        "stages": stages,
        "tasks": _tasks_that_use(benchmark, rest, plugins),
        "text": template.file.read_text("utf-8-sig"),
    }


def _tasks_that_use(benchmark: str, name: str, plugins: Plugins) -> list[str]:
    """The tasks whose options use the prompt, with families of tasks as one entry."""
    from harness.cli.tasks import folded
    from harness.registry.task_catalogue import Catalogue
    from harness.tasks.options import typed_options

    catalogue = Catalogue(plugins)
    using: list[Entry] = []
    for entry in catalogue.entries:
        if entry.benchmark == benchmark and not entry.abstract and entry.members is None:
            with errors_to(print_error):
                (task,) = catalogue.select([entry.name]).tasks
                known = plugins.benchmark(task.benchmark)
                options = typed_options(task, known.options)
                asked = {one for stage in known.stages for one in stage.asked(options)}
                using += [entry] if name in asked and name not in task.prompts else []
    return [entry.name for entry in folded(using)]


def _print_prompt(page: Mapping[str, Any]) -> None:
    about = {
        "file": shown(Path(page["files"][0])),
        "from": page["sources"][0],
        "digest": page["digest"],
        "stages": ", ".join(page["stages"]) or "none uses it",
        "tasks": ", ".join(page["tasks"]) or "none uses it",
    }
    variables = {name: meaning or NOT_DESCRIBED for name, meaning in page["variables"].items()}
    print_sections([(page["name"], [*about.items()]), ("variables", [*variables.items()])])
    print("template:")
    print(clean_text(page["text"].removesuffix("\n"), lines=True))

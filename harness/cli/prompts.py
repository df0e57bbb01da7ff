"""`harness prompts`: the installed prompts, or one prompt with the meaning of its variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base.errors import HarnessError, UnknownName, did_you_mean
from harness.cli.command import argument, command, json_option
from harness.cli.output import print_error, print_json, print_rows, print_sections
from harness.registry import load_plugins
from harness.reporting.text import clean_text

if TYPE_CHECKING:
    from harness.prompts import Templates
    from harness.registry import Plugins
    from harness.registry.task_catalogue import Entry

NOT_DESCRIBED = "not described; variables.yaml next to the prompt can describe it"


@command("harness prompts 'rate*'", "harness prompts interests/name.candidate")
@argument(
    "patterns", metavar="PATTERN", nargs=-1, help="a name, part or glob",
    candidates="prompts",
)  # fmt: skip
@json_option
def prompts(patterns: Sequence[str], json: bool) -> int:
    """List prompts as BENCHMARK/PROMPT.ROLE, all or those that match a PATTERN. For the full name
    of a prompt, show its text, its variables and the tasks that use it.
    """
    from harness.pipeline.preparation import prompt_folders
    from harness.prompts import Templates
    from harness.tasks.load import shown

    plugins = load_plugins()
    templates = Templates(prompt_folders(plugins))
    files = templates.everything()
    full, others = _chosen(patterns, files)
    if json:
        pages = [_as_json(name, files[name], plugins) for name in others]
        print_json({"prompts": [*(_page(name, templates, plugins) for name in full), *pages]})
        return 0
    for name in full:
        _print_page(_page(name, templates, plugins))
    for benchmark in dict.fromkeys(name.partition("/")[0] for name in others):
        print(f"{benchmark}:")
        own = [name for name in others if name.startswith(f"{benchmark}/")]
        rows = [(name.partition("/")[2], " and ".join(map(shown, files[name]))) for name in own]
        print_rows(rows)
    print_error(*plugins.broken)
    return 0


def _chosen(
    patterns: Sequence[str], files: Mapping[str, tuple[Path, ...]]
) -> tuple[list[str], list[str]]:
    if not patterns:
        return [], list(files)
    full: dict[str, None] = {}
    others: dict[str, None] = {}
    for pattern in patterns:
        name = pattern.removesuffix(".j2")
        exact = [one for one in files if one == name or one.partition("/")[2] == name]
        found = [one for one in files if name in one or fnmatchcase(one, name)]
        if not found:
            known = [*files, *(one.partition("/")[2] for one in files)]
            raise UnknownName(
                f"no prompt matches {pattern!r}",
                hint=did_you_mean(name, known) or "`harness prompts` lists all prompts",
            )
        if len(exact) == 1:
            full[exact[0]] = None
        else:
            others.update(dict.fromkeys(exact or found))
    return list(full), [name for name in files if name in others and name not in full]


def _as_json(name: str, files: Sequence[Path], plugins: Plugins) -> dict[str, Any]:
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


def _page(name: str, templates: Templates, plugins: Plugins) -> dict[str, Any]:
    from harness.prompts.variable_docs import meanings

    benchmark, _, rest = name.partition("/")
    prompt, _, role = rest.rpartition(".")
    template = templates.need(benchmark, prompt, role)
    return {
        **_as_json(name, [template.file], plugins),
        "digest": template.digest,
        "variables": meanings(template.file, template.variables),
        "stages": _stages(benchmark, prompt, role, plugins),
        "tasks": _tasks(benchmark, rest, plugins),
        "text": template.file.read_text("utf-8-sig"),
    }


def _stages(benchmark: str, prompt: str, role: str, plugins: Plugins) -> list[str]:
    try:
        stages = plugins.benchmark(benchmark).stages
    except HarnessError as error:
        print_error(error)
        return []
    return [
        stage.name
        for stage in stages
        if prompt in stage.templates and role in (*stage.roles, *stage.judges)
    ]


def _tasks(benchmark: str, name: str, plugins: Plugins) -> list[str]:
    """The tasks whose options use the prompt, with families of tasks as one entry."""
    from harness.cli.tasks import folded
    from harness.registry.task_catalogue import Catalogue
    from harness.tasks.options import typed_options

    catalogue = Catalogue(plugins)
    using: list[Entry] = []
    for entry in catalogue.entries:
        if entry.benchmark == benchmark and not entry.abstract and entry.members is None:
            try:
                (task,) = catalogue.select([entry.name]).tasks
                known = plugins.benchmark(task.benchmark)
                options = typed_options(task, known.options)
                asked = {one for stage in known.stages for one in stage.asked(options)}
                using += [entry] if name in asked and name not in task.prompts else []
            except HarnessError as error:
                print_error(error)
    return [entry.name for entry in folded(using)]


def _print_page(page: Mapping[str, Any]) -> None:
    from harness.tasks.load import shown

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

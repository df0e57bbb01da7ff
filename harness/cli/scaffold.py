"""`harness new-plugin NAME`: a new package with a benchmark to start from."""

from __future__ import annotations

import keyword
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.errors import UsageError
from harness.cli.command import PATH, argument, command, option
from harness.runs.atomic_files import storage_error

if TYPE_CHECKING:
    from harness.registry import Plugins

VALID = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
RESERVED = frozenset({"harness", "plugins", "test", "tests", "docs", "build", "dist"})


def package_name(name: str) -> str:
    """The name of the plugin's package, which is also the name of its benchmark and task."""
    suggested = re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")
    if not VALID.fullmatch(name):
        raise UsageError(
            "this name cannot be the name of a plugin",
            found=repr(name),
            expected="lower-case letters, digits and single dashes, a letter first, as my-bench",
            hint=f"{suggested!r} is valid" if VALID.fullmatch(suggested) else None,
        )
    package = name.replace("-", "_")
    if keyword.iskeyword(package) or package in RESERVED | sys.stdlib_module_names:
        raise UsageError(
            f"{package!r} cannot be the name of a package",
            expected="a name that is not a Python keyword or module, and not reserved",
            hint=f"{name}-bench is valid",
        )
    return package


def check_not_taken(package: str, plugins: Plugins) -> None:
    """Raise UsageError if something that is installed has the name."""
    from harness.registry.task_catalogue import Catalogue

    catalogue = Catalogue(plugins)
    holders = []
    if package in plugins.benchmarks:
        holders.append(f"a benchmark of {plugins.benchmarks[package].origin}")
    holders += [
        f"a {'task' if entry.members is None else 'group'}, {entry.file}"
        for entry in catalogue.entries
        if entry.name == package
    ]
    if package in catalogue.tags:
        holders.append(f"a tag of {', '.join(catalogue.tags[package])}")
    installed = [*plugins.loaded, *plugins.broken, *plugins.left_out]
    holders += [f"a plugin of {one.distribution}" for one in installed if one.plugin == package]
    spec = find_spec(package)
    if spec is not None and not holders:
        holders.append(f"a package, {spec.origin or 'without a file'}")
    with suppress(PackageNotFoundError):
        installed_as = distribution(package)
        if not holders:
            holders.append(f"the distribution {installed_as.name} {installed_as.version}")
    if holders:
        raise UsageError(
            f"the name {package!r} is taken",
            found="; ".join(holders),
            expected="a name that no plugin, benchmark, task, group, tag or package has",
            hint="begin it with your own name, as acme-films, or uninstall what has the name",
        )


TEMPLATES = Path(__file__).parent / "templates"
ENDING = ".tmpl"
DISTRIBUTION = "user-understanding-harness"


@dataclass(frozen=True, kw_only=True)
class Form:
    """A kind of package that can be written."""

    folders: tuple[str, ...]
    """The folders of its templates."""
    about: str
    """The description of the benchmark."""
    prompt: str
    """The prompt that its baseline answers."""
    rule: str
    """The function of its baseline."""
    run: str
    """The command to try it, with `{package}` for its task."""


SIMPLE = Form(
    folders=("both", "simple"),
    about="Which of two films would a person rather watch?",
    prompt="answer",
    rule="most_shared_words",
    run="harness --model baseline --tasks {package} --data sample",
)
STAGES = Form(
    folders=("both", "stages"),
    about="What do the films have in common that a person likes?",
    prompt="name",
    rule="shared_words",
    run="harness --model baseline --judge lexical --tasks {package} --data sample",
)


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    """Create the folder with all files; if one cannot be written, the folder is removed."""
    folder.mkdir(parents=True)
    try:
        for path, text in texts.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def files_of(name: str, package: str, form: Form) -> Mapping[str, str]:
    """The text of each file, by its path in the new folder."""
    words = {
        "__NAME__": name,
        "__PACKAGE__": package,
        "__ABOUT__": form.about,
        "__PROMPT__": form.prompt,
        "__RULE__": form.rule,
        "__HARNESS__": version(DISTRIBUTION),
    }
    texts = {}
    for folder in form.folders:
        home = TEMPLATES / folder
        for template in sorted(home.rglob(f"*{ENDING}")):
            path = template.relative_to(home).as_posix().removesuffix(ENDING)
            path = ".gitignore" if path == "gitignore" else path.replace("PACKAGE", package)
            text = template.read_text("utf-8")
            for word, replacement in words.items():
                text = text.replace(word, replacement)
            texts[path] = text
    return texts


@command("harness new-plugin my-bench", "harness new-plugin my-bench --stages --into ~")
@argument("name", metavar="NAME", help="of the package, as my-bench; its task is my_bench")
@option("--into", metavar="DIR", type=PATH, default=".", help="where its folder is created (here)")
@option(
    "--stages", is_flag=True, help="two stages, options and a judge, instead of one question a row",
)  # fmt: skip
def new_plugin(name: str, into: Path, stages: bool) -> None:
    """Create a package that installs, runs with the baseline and passes its own tests: pyproject,
    task, prompt, sample, baseline, tests. Then change it to your benchmark.
    """
    from harness.registry import load_plugins

    form = STAGES if stages else SIMPLE
    package, folder = package_name(name), into / name
    check_not_taken(package, load_plugins())
    texts = files_of(name, package, form)
    try:
        _write(folder, texts)
    except FileExistsError as error:
        raise UsageError(
            "this folder or file already exists",
            found=str(folder),
            expected="a folder that does not exist: nothing is overwritten",
            hint="choose another name, or another folder with --into",
        ) from error
    except OSError as error:
        raise storage_error(folder, error, option="--into") from error
    print(f"{folder}: {len(texts)} files. Next:")
    print(f"  pip install -e {shlex.quote(f'{folder}[test]')}")
    print(f"  {form.run.format(package=package)}")
    print(f"  python -m pytest {shlex.quote(str(folder))}")

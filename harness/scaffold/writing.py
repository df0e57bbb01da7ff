"""Writes a new plugin's files from the templates."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from harness.errors import StorageError, UsageError
from harness.scaffold.names import package_name, refuse_taken

TEMPLATES = Path(__file__).parent / "templates"
ENDING = ".tmpl"
DISTRIBUTION = "user-understanding-harness"


@dataclass(frozen=True, kw_only=True)
class Form:
    """One of the packages that can be written; `folders` are those of its templates."""

    folders: tuple[str, ...]
    about: str
    run: str


SIMPLE = Form(
    folders=("both", "simple"),
    about="Which of two films would a person rather watch?",
    run="harness --model baseline --tasks {package} --data sample",
)
STAGES = Form(
    folders=("both", "stages"),
    about="What do the films have in common that a person likes?",
    run="harness --model baseline --judge lexical --tasks {package} --data sample",
)


@dataclass(frozen=True, kw_only=True)
class Written:
    """A plugin that was written: its folder, its files within it, and the command to try it."""

    folder: Path
    files: tuple[str, ...]
    run: str


def write_plugin(name: str, form: Form, *, into: Path) -> Written:
    """Write a package of that name into a folder of that name; UsageError where one is there."""
    from harness.plugin_manager import load_plugins

    package = package_name(name)
    folder = into / name
    refuse_taken(package, load_plugins())
    texts = files_of(name, package, form)
    try:
        _write(folder, texts)
    except FileExistsError as error:
        raise UsageError(
            "there is something of that name already",
            found=str(folder),
            expected="a folder that is not there yet: nothing is written over",
            hint="another name, or --into another folder",
        ) from error
    except OSError as error:
        raise StorageError(
            "the plugin could not be written",
            where=str(folder),
            found=f"{type(error).__name__}: {error}",
            expected="a folder that can be written to: --into DIR",
        ) from error
    return Written(folder=folder, files=tuple(sorted(texts)), run=form.run.format(package=package))


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    """Make the folder with all of the files; where one cannot be written, nothing is left of it."""
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
    """The text of each file by its path in the new folder."""
    words = {
        "__NAME__": name,
        "__PACKAGE__": package,
        "__ABOUT__": form.about,
        "__HARNESS__": version(DISTRIBUTION),
    }
    texts = {}
    for folder in form.folders:
        home = TEMPLATES / folder
        for template in sorted(home.rglob(f"*{ENDING}")):
            path = template.relative_to(home).as_posix().removesuffix(ENDING)
            path = ".gitignore" if path == "gitignore" else path.replace("PACKAGE", package)
            text = template.read_text("utf-8")
            for word, meant in words.items():
                text = text.replace(word, meant)
            texts[path] = text
    return texts

"""Data that a data tool of a plugin makes from other data, made once and kept.

<downloads>/built/<digest>/data/…        what the tool wrote; always whole
<downloads>/built/<digest>/record.json   the tool, its options, and the digests of its inputs
<downloads>/built/<asked>.json           the digest of what a task asked for
<downloads>/built/<asked>/<digest>/      what is being built
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.base.errors import DataError, Unavailable
from harness.base.hashing import digest
from harness.base.redaction import without_query
from harness.data.fetch import VARIABLE, BuildTool, Fetching, downloads_folder, fetched, locked
from harness.runs.atomic_files import atomic_write, make_folder, storage_error

if TYPE_CHECKING:
    from harness.contracts.task import BuildSpec, InputSpec

REPORT_SECONDS = 60.0


class ProgressLines:
    """Shows a line for each minute of work; short work has none.

    progress = ProgressLines(print)
    progress("users", 10, 400)

    State: when the last line was shown.
    """

    def __init__(
        self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._say = say
        self._clock = clock
        self._reported = clock()

    def __call__(self, what: str, done: int, of: int | None = None) -> None:
        now = self._clock()
        if now - self._reported >= REPORT_SECONDS:
            self._reported = now
            share = "" if of is None else f" of {of:,}"
            self._say(f"  {what}: {done:,}{share}")


class InputFile(msgspec.Struct, frozen=True):
    """A file that a tool read: where it came from, its name there, and the digest of its source."""

    source: str
    file: str
    digest: str


class BuildRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How data was built; `plugin` names the plugin of the tool with its version."""

    tool: str
    plugin: str
    options: dict[str, Any]
    inputs: dict[str, tuple[InputFile, ...]]


@dataclass(frozen=True, kw_only=True)
class Built:
    """Built data: its folder, its record, and the digest of what the record names."""

    folder: Path
    digest: str
    record: BuildRecord


def built(spec: BuildSpec, tool: BuildTool, *, task: str, fetching: Fetching) -> Built:
    """The data that a tool makes, from the cache, or else built from inputs that are fetched.

    Several processes may ask for the same data at once: one builds it.
    """
    inputs = msgspec.to_builtins(spec.inputs)
    place = downloads_folder() / "built"
    asked = place / f"{digest([spec.tool, tool.plugin, dict(tool.options), inputs])}.json"
    found = _kept(asked)
    if found is not None:
        return found
    if fetching.look:
        raise Unavailable(
            f"the data of task '{task}' was not built yet",
            found=f"looked in {place}",
            hint=f"`harness data fetch {task}` builds it, and so does a run",
        )
    waiting = f"another process builds the data of task '{task}'"
    with locked(asked.with_suffix(".lock"), waiting, fetching.say):
        return _kept(asked) or _build(spec, tool, asked, task=task, fetching=fetching)


def _kept(asked: Path) -> Built | None:
    """What was built for a task that asked the same; None if that is not there."""
    try:
        key = msgspec.json.decode(asked.read_bytes(), type=str)
        folder = asked.parent / key
        record = msgspec.json.decode((folder / "record.json").read_bytes(), type=BuildRecord)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(
            "the record of built data cannot be read",
            where=str(asked),
            found=str(error),
            hint="remove the file; the data is then built again",
        ) from error
    data = folder / "data"
    return Built(folder=data, digest=key, record=record) if data.is_dir() else None


def _build(
    spec: BuildSpec, tool: BuildTool, asked: Path, *, task: str, fetching: Fetching
) -> Built:
    """Fetch the inputs and run the tool; nothing is kept unless all of that succeeds."""
    files: dict[str, list[Path]] = {}
    inputs: dict[str, tuple[InputFile, ...]] = {}
    for name, sources in spec.inputs.items():
        pairs = [one for source in sources for one in _files(source, task, fetching)]
        files[name] = [path for path, _ in pairs]
        inputs[name] = tuple(file for _, file in pairs)
    record = BuildRecord(
        tool=spec.tool, plugin=tool.plugin, options=dict(tool.options), inputs=inputs
    )
    read = {name: [(one.file, one.digest) for one in each] for name, each in inputs.items()}
    key = digest([spec.tool, tool.plugin, record.options, read])
    folder = asked.parent / key
    if not (folder / "data").is_dir():  # another task may ask for the same from elsewhere
        count = sum(map(len, files.values()))
        fetching.begin(f"building data from {count} files, once: harness data {spec.tool}")
        # The folder appears in one step; until then, all is in `work`. What a tool that continues
        # left unfinished stays there for the same inputs.
        work = asked.with_suffix(".work")
        begun, ended = work / key, False
        for old in work.glob("*"):
            if old != begun or not tool.continues:
                shutil.rmtree(old, ignore_errors=True)
        make_folder(begun, option=VARIABLE)
        try:
            tool.run(files, begun / "data", ProgressLines(fetching.say))
            atomic_write(begun / "record.json", msgspec.json.encode(record), option=VARIABLE)
            if not (folder / "data").is_dir():
                shutil.rmtree(folder, ignore_errors=True)  # a person removed the data alone
                begun.replace(folder)
            ended = True
        except OSError as error:
            raise storage_error(folder, error, option=VARIABLE) from error
        finally:
            if ended or not tool.continues:
                shutil.rmtree(work, ignore_errors=True)
        fetching.say(f"  built, kept in {folder}")
    atomic_write(asked, msgspec.json.encode(key), option=VARIABLE)
    return Built(folder=folder / "data", digest=key, record=record)


def _files(source: InputSpec, task: str, fetching: Fetching) -> Iterator[tuple[Path, InputFile]]:
    if source.hub is not None:
        from harness.data.hub import fetch_files

        folder, names = fetch_files(source.hub, task=task, fetching=fetching)
        repo = source.hub.repo
        for name in names:
            file = InputFile(f"{repo} at {folder.name}", name, digest([repo, folder.name, name]))
            yield folder / name, file
    remote = source.url or source.drive
    if remote is not None:
        download = fetched(remote, task=task, fetching=fetching)
        for path in sorted(path for path in download.folder.rglob("*") if path.is_file()):
            name = path.relative_to(download.folder).as_posix()
            yield path, InputFile(without_query(remote.address), name, download.digest)

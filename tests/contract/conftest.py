"""An environment that holds the built wheel and nothing of the checkout."""

import fcntl
import os
import subprocess
import sys
import sysconfig
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OWN = "user_understanding_harness"


@dataclass(frozen=True, kw_only=True)
class Environment:
    """A virtual environment whose commands run in an empty folder outside the checkout."""

    folder: Path
    elsewhere: Path

    def run(self, *command, **extra):
        """Runs a command of the environment; `extra` are environment variables."""
        program, *arguments = command
        return subprocess.run(
            [str(self.folder / "bin" / program), *arguments], cwd=self.elsewhere,
            env={**_environment(self.elsewhere), **extra}, capture_output=True, text=True,
            timeout=240, check=False,
        )  # fmt: skip

    def said(self, *command, **extra):
        """What a command printed; it has to end well."""
        result = self.run(*command, **extra)
        assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
        return result.stdout

    def install(self, wheel):
        _succeed(
            sys.executable, "-m", "pip", "--python", str(self.folder / "bin" / "python"),
            "install", "--quiet", "--no-deps", "--no-index", str(wheel), where=self.elsewhere,
        )  # fmt: skip

    @contextmanager
    def with_package(self, project):
        """Builds the wheel of a package in its own folder, and has it installed for a while."""
        out = project.parent / "dist"
        _succeed(
            sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out),
            str(project), where=project.parent,
        )  # fmt: skip
        [wheel] = out.glob("*.whl")
        self.install(wheel)
        try:
            yield
        finally:
            _succeed(
                sys.executable, "-m", "pip", "--python", str(self.folder / "bin" / "python"),
                "uninstall", "-qy", project.name, where=self.elsewhere,
            )  # fmt: skip


def _environment(folder):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {
        **kept,
        "HARNESS_CACHE": str(folder / "cache"),
        "HF_HUB_OFFLINE": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def _succeed(*command, where):
    result = subprocess.run(
        command, cwd=where, env=_environment(where), capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, f"{' '.join(command)}\n{result.stdout}\n{result.stderr}"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """The folder of the one wheel and environment of all test processes, which is locked.

    Who installs another package into the environment is alone with it.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "wheel"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


@pytest.fixture(scope="module")
def built(shared):
    """The folder that a plain `python -m build` of the checkout filled: sdist, wheel made of it."""
    folder = shared / "built"
    if not list(folder.glob("*.whl")):
        _succeed(sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT), where=shared)
    return folder


@pytest.fixture(scope="module")
def environment(shared, built):
    """An environment with the wheel, and what it needs linked from the running one."""
    made = Environment(folder=shared / "venv", elsewhere=shared / "elsewhere")
    if not (shared / "ready").exists():
        made.elsewhere.mkdir()
        _succeed(sys.executable, "-m", "venv", "--without-pip", str(made.folder), where=shared)
        target = Path(sysconfig.get_path("purelib", "venv", vars={"base": str(made.folder)}))
        for entry in _dependencies():
            (target / entry.name).symlink_to(entry)
        [wheel] = built.glob("*.whl")
        made.install(wheel)
        (shared / "ready").touch()
    return made


def _dependencies():
    folders = {Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")}
    for folder in sorted(folders):
        for entry in sorted(folder.iterdir()):
            if OWN not in entry.name and entry.suffix != ".pth" and entry.name != "__pycache__":
                yield entry

"""The keys of a run's models: taken where the run was started, and set on its nodes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec

from harness.base.key_files import hand_over, key_text
from harness.contracts.model import Model


class RunKeys(msgspec.Struct, frozen=True, kw_only=True):
    """What the keys and addresses of a run's models come from; no text shows the values.

    `variables` has the value of each environment variable, None for one that is not set, and
    `files` the texts of key files.
    """

    variables: dict[str, str | None] = {}
    files: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"RunKeys(variables={list(self.variables)!r}, files={list(self.files)!r})"


def keys_of(models: Iterable[Model], environment: Mapping[str, str] | None = None) -> RunKeys:
    """The variables and files that the models read, with their values in this process.

    A file that cannot be read is left out: the node may have it, and says so if it does not.
    """
    here = os.environ if environment is None else environment
    variables: dict[str, str | None] = {}
    files: dict[str, str] = {}
    for model in models:
        variables |= {name: here.get(name) for name in model.variables}
        for named in model.key_files:
            with suppress(OSError, UnicodeDecodeError, RuntimeError):
                files[named] = key_text(named)
    return RunKeys(variables=variables, files=files)


def take_keys(keys: RunKeys) -> None:
    """Set the variables in this process, and keep the files' texts; call it before `check_node`.

    What was not set where the run was started is not set here either, so that no request goes to
    an address, and with a key, that only this machine names.
    """
    for name, value in keys.variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    hand_over(keys.files)

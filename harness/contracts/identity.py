"""A model's identity, and how far its answers may be reused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

RECORDED = "recorded"
"""The key in `details` of a model that answers from a recording: the recording's digest."""

SOFTWARE = "software"
"""The key in `details` of the server's name and version, if the harness starts the server: answers
of one version are not reused under another, but runs under both may be compared."""

COMMIT, SHORT = re.compile("[0-9a-f]{40}"), 7
"""A revision that is a commit, and how many of its digits a label shows."""


def label_of(kind: str, args: Mapping[str, str], given: str = "") -> str:
    """The label in tables: as given, else a path's last part or the model's name, and its revision.

    >>> label_of("vllm", {"pretrained": "/ckpts/run7/step-1000"})
    'step-1000'
    >>> label_of("openai", {"model": "small", "revision": "step-1000"})
    'small@step-1000'
    """
    name = args.get("model") or args.get("pretrained") or kind
    name = (path_parts(name) or [name])[-1]
    pin = args.get("revision") or args.get("identity")
    return given or (f"{name}@{pin[:SHORT] if COMMIT.fullmatch(pin) else pin}" if pin else name)


def path_parts(name: str) -> list[str]:
    """The parts of a path; none for a name, such as `org/model` at a hub."""
    if name.startswith(("/", "./", "../", "~")) or name.rstrip("/").count("/") > 1:
        return [part for part in name.split("/") if part]
    return []


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides a model's answers; equal identities may share stored answers.

    `Identity(kind="acme", name="small", details={"revision": "3f2a"})`
    """

    kind: str
    """The name under which the plugin registered the kind of model."""

    name: str
    """The model's name at its server or hub."""

    details: dict[str, Any] = {}
    """Further JSON values that decide the answers: revision, precision, host …"""

    scope: Literal["everywhere", "run", "call"] = "everywhere"
    """How far stored answers may be reused. "everywhere": the weights are pinned. "run": the name
    may mean other weights tomorrow. "call": never, as the model answers by rule from more than
    the messages."""

    @property
    def recorded(self) -> bool:
        """Whether the model answers from a recording of another model."""
        return RECORDED in self.details

    @property
    def label(self) -> str:
        """`kind:name`, as tables and price tables show the model."""
        return f"{self.kind}:{self.name}"

    def key(self, run_id: str) -> dict[str, Any]:
        """The model's part of a call key in one run."""
        parts: dict[str, Any] = {"kind": self.kind, "name": self.name, "details": self.details}
        if self.scope != "everywhere":
            parts["run"] = run_id
        return parts

    def may_be(self, other: Identity) -> bool:
        """Whether both may be the same weights: same name, and no detail that differs."""
        if (self.kind, self.name) != (other.kind, other.name):
            return False
        for name in self.details.keys() & other.details.keys() & {"revision", "identity", "host"}:
            both = self.details[name], other.details[name]
            # Several hosts are a list.
            mine, theirs = (value if isinstance(value, list) else [value] for value in both)
            if not any(value in theirs for value in mine):
                return False
        return True

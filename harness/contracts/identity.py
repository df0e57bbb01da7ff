"""Who a model is, and how far its answers may be reused."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

RECORDED = "recorded"
"""The detail of a model that answers from a recording: the digest of that. Nobody is asked."""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """All that decides a model's answers; equal identities may share stored answers.

    `scope` says how far: "everywhere" for weights that are pinned, "run" for a name behind which
    other weights may stand tomorrow, "call" for models that answer by rule, from more than the
    messages: their answers are never stored.
    """

    kind: str
    name: str
    details: dict[str, Any] = {}
    scope: Literal["everywhere", "run", "call"] = "everywhere"

    @property
    def recorded(self) -> bool:
        """Whether it answers from a recording, as whoever was recorded."""
        return RECORDED in self.details

    @property
    def label(self) -> str:
        """What people and price tables call the model: kind and name."""
        return f"{self.kind}:{self.name}"

    def key(self, run_id: str) -> dict[str, Any]:
        """The part of a key that stands for the model in one run folder."""
        parts: dict[str, Any] = {"kind": self.kind, "name": self.name, "details": self.details}
        if self.scope != "everywhere":
            parts["run"] = run_id
        return parts

    def may_be(self, other: Identity) -> bool:
        """Whether both may be the same weights: one name, and nothing that tells them apart."""
        if (self.kind, self.name) != (other.kind, other.name):
            return False
        told = self.details.keys() & other.details.keys() & {"revision", "identity", "host"}
        return all(self.details[name] == other.details[name] for name in told)

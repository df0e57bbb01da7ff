"""SPECs, which name models and judges on the command line: `openai:model=m,base_url=…`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.base.errors import UsageError
from harness.contracts.identity import label_of

LATEST = "latest"
"""The newest run, where a command takes a run."""

LABEL = r"\w[\w.@-]{0,39}"
"""What the label of a model and the name of a run look like."""

_LABEL = re.compile(LABEL)
_LABEL_IN_SPEC = re.compile(r"(?<=[:,])(?:label|batch)=[^,+]*,?")
_HOST = re.compile(r"https?://(?:[^\s/@]*@)?([^\s/@,;+?#\"']+)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A model or judge as a user or a task names it; `rest` is the text after `KIND:`.

    `given` is the argument `label=`, which decides nothing but the label and is not in `args`.
    """

    kind: str
    args: Mapping[str, str]
    rest: str = ""
    given: str = ""

    @property
    def label(self) -> str:
        """The kind and the model's name, as keys and errors have it."""
        name = self.args.get("model") or self.args.get("pretrained")
        return f"{self.kind}:{name}" if name else self.kind

    @property
    def shown(self) -> str:
        """The label in tables."""
        return label_of(self.kind, self.args, self.given)


def parse_args(text: str) -> dict[str, str]:
    """The mapping in `a=b,c=d`; a part without `=` belongs to the value before it."""
    args: dict[str, str] = {}
    last: str | None = None
    for part in text.split(",") if text else ():
        name, equals, value = part.partition("=")
        if equals and is_argument(name.strip()):
            last = name.strip()
            if last in args:
                raise UsageError(f"argument {last!r} is given twice", found=text)
            args[last] = value.strip()
        elif last is not None:
            args[last] += f",{part}"
        else:
            raise UsageError("this is no argument", found=part, expected="name=value,name=value")
    return args


def is_argument(name: str) -> bool:
    """Whether an argument can have this name: words with dots between them."""
    return all(part.isidentifier() for part in name.split("."))


def parse_spec(text: str) -> Spec:
    """The SPEC in `KIND`, `KIND:name=value,…` or `KIND:MODEL`, short for `KIND:model=MODEL`."""
    kind, _, rest = text.partition(":")
    first, _, others = rest.partition(",")
    name, equals, _ = first.partition("=")
    if rest and not (equals and is_argument(name.strip())):
        args = {"model": first, **parse_args(others)}
    else:
        args = parse_args(rest)
    given = args.pop("label", "")
    return Spec(kind=kind, args=args, rest=rest, given=given and checked_label(given, "label="))


def checked_label(text: str, where: str) -> str:
    """The text, if it can be the label of a model or the name of a run; UsageError otherwise."""
    if not _LABEL.fullmatch(text) or text == LATEST:
        raise UsageError(
            "this cannot be a label",
            where=where,
            found=text,
            expected="at most 40 letters, digits, `_`, `-`, `.` and `@`, and not `latest`",
        )
    return text


def without_labels(text: str) -> str:
    """The text of a SPEC without `label=` and `batch=`, which decide nothing."""
    if not _LABEL_IN_SPEC.search(text):
        return text
    return re.sub(r"[:,]+(?=\+|$)", "", _LABEL_IN_SPEC.sub("", text))


def hosts_in(texts: Iterable[str]) -> frozenset[str]:
    """The hosts of all addresses in SPECs or arguments, each with its port if it has one."""
    return frozenset(found.lower() for text in texts for found in _HOST.findall(text))


def split_members(text: str) -> tuple[str, ...]:
    """The SPECs in `SPEC+SPEC+…`: split at each `+` before a letter, not at `\\+`."""
    parts = re.split(r"(?<!\\)\+(?=[^\W\d_])", text)
    return tuple(part.replace("\\+", "+") for part in parts if part)


def joined_members(specs: Iterable[str]) -> str:
    """The SPECs as one text that `split_members` splits again."""
    return "+".join(re.sub(r"\+(?=[^\W\d_])", r"\\+", spec) for spec in specs)

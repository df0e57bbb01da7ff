"""SPECs, which name models and judges on the command line: `openai:model=m,base_url=…`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.base.errors import UsageError

_HOST = re.compile(r"https?://(?:[^\s/@]*@)?([^\s/@,+?#\"']+)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A model or judge as a user or a task names it; `rest` is the text after `KIND:`."""

    kind: str
    args: Mapping[str, str]
    rest: str = ""

    @property
    def label(self) -> str:
        """The name in tables: the kind and the model's name."""
        name = self.args.get("model") or self.args.get("pretrained")
        return f"{self.kind}:{name}" if name else self.kind


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
        return Spec(kind=kind, args={"model": first, **parse_args(others)}, rest=rest)
    return Spec(kind=kind, args=parse_args(rest), rest=rest)


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

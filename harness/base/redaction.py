"""Removes keys, tokens and passwords from everything that is written."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

REDACTED = "[redacted]"
HIDDEN = "***"
"""Replaces a secret in what a server sent."""

_SECRET_WORDS = frozenset(
    {"key", "keys", "apikey", "accesskey", "secretkey", "secret", "secrets"}
    | {"token", "apitoken", "accesstoken", "authtoken", "auth", "authorization", "bearer"}
    | {"password", "passwd", "pwd", "passphrase", "credential", "credentials", "cookie"}
)
_MARKS = frozenset(
    {"bos", "eos", "pad", "unk", "sep", "cls", "mask", "image", "video", "audio", "start", "end"}
)
"""Words before `token` in the names of a vocabulary's tokens."""

_MEASURES = frozenset({"id", "ids", "threshold", "budget", "count", "limit"})
"""Words after `token` in names of numbers: `stop_token_ids`."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_KEY_MATERIAL = re.compile(
    r"""
    (?<![\w-])(?:sk|pk|rk)-(?=[\w-]*\d)[A-Za-z0-9_-]{16,}       # OpenAI and compatible services
    | \bhf_[A-Za-z0-9]{16,}                                     # Hugging Face
    | \bgh[opsur]_[A-Za-z0-9]{20,} | \bgithub_pat_\w{20,}       # GitHub
    | \bAIza[A-Za-z0-9_-]{30,} | \bA[KS]IA[A-Z0-9]{16}\b        # Google, AWS
    | \bxox[abprs]-[A-Za-z0-9-]{10,}                            # Slack
    | \beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*   # JSON web tokens
    | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----
    """,
    re.VERBOSE,
)
_KEY_START = re.compile(
    "[spr]k-|hf_|gh[opsur]_|github_pat_|AIza|A[KS]IA|xox[abprs]|eyJ|PRIVATE KEY-----"
)
"""One of these is in every text that `_KEY_MATERIAL` matches."""

_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{12,}")
_USER_IN_URL = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^\s/@?#]+@")
_QUERY = re.compile(r"(?<=\S)\?[^\s#]+")
_ARGUMENT = re.compile(r"(?<![\w.-])([\w.-]+)\s*=\s*(?=\S)")
_NEXT_ARGUMENT = re.compile(r"(?:[,&]\s*|\s)[\w.-]+\s*=|&|\n")
"""The end of an argument's value, which may contain commas and spaces."""

_MEMBER = re.compile(r"""(["'])(?P<name>[\w.-]+)\1\s*:\s*(["'])(?P<value>(?:\\.|(?!\3).)*)\3""")
"""A member of a JSON object whose value is a string."""

_SECRET_VARIABLE = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD)$")
_SHORTEST_SECRET = 12
_SHORTEST_ECHO = 6
"""Shorter keys are words such as `test`, which texts hold for other reasons."""

_TOLD = 12
"""So many characters of a secret are recognised without the others."""

_registered: set[str] = set()


@lru_cache(maxsize=4096)
def names_a_secret(name: str) -> bool:
    """Whether an argument of that name holds a key, token, secret or password."""
    words = [word.lower() for word in _WORD.findall(name)]
    before, last = ["", "", *words][-2:]
    if (last == "token" and before in _MARKS) or (before == "token" and last in _MEASURES):
        return False
    # A cache key says which requests begin alike.
    if last in ("env", "file") or (before, last) == ("cache", "key"):
        # `api_key_env` and `api_key_file` name the variable and the file that hold the key.
        return False
    return any(word in _SECRET_WORDS for word in words)


def secret_member(value: Any) -> str | None:
    """The name of the first member, at any depth, that is named like a secret and holds a text."""
    members = value.items() if isinstance(value, Mapping) else ()
    for name, held in members:
        if isinstance(held, str) and held and names_a_secret(str(name)):
            return str(name)
    inside = value.values() if isinstance(value, Mapping) else value
    found = map(secret_member, inside if isinstance(value, (Mapping, list)) else ())
    return next((name for name in found if name is not None), None)


def keep_out(secret: str) -> None:
    """Register a secret that is in no environment variable; short ones are ignored."""
    if len(secret) >= _SHORTEST_SECRET:
        _registered.add(secret)


def redacted_args(args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, the values of secret ones redacted at any depth."""
    return {
        name: REDACTED if names_a_secret(name) and value is not None else _redacted_arg(value)
        for name, value in args.items()
    }


def redacted_spec(spec: str) -> str:
    """A SPEC, `kind:name=value,…`, the values of secret arguments redacted."""
    kept, at = [], 0
    for found in _ARGUMENT.finditer(spec):
        if found.start() >= at and names_a_secret(found[1]):
            kept += [spec[at : found.end()], REDACTED]
            end = _NEXT_ARGUMENT.search(spec, found.end())
            at = end.start() if end else len(spec)

    def member(found: re.Match[str]) -> str:
        if not names_a_secret(found["name"]):
            return found[0]
        return found[0][: found.start("value") - found.start()] + REDACTED + found[0][-1]

    return _MEMBER.sub(member, "".join([*kept, spec[at:]]))


def without_key_material(value: Any, secrets: tuple[str, ...] | None = None) -> Any:
    """A JSON value, all recognisable key material in its strings redacted.

    That is: text in the form of a known kind of key, credentials in a URL, the values of the
    environment's secret variables, and secrets registered with `keep_out`.
    """
    known = known_secrets() if secrets is None else secrets
    if isinstance(value, str):
        return _without(value, known)
    if isinstance(value, Mapping):
        return {
            _without(name, known) if isinstance(name, str) else name: without_key_material(
                held, known
            )
            for name, held in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [without_key_material(member, known) for member in value]
    return value


def safe_text(text: str) -> str:
    """A text for people, all secrets in it redacted."""
    redacted: str = without_key_material(redacted_spec(text))
    return redacted


def without_query(text: str) -> str:
    """A text whose addresses have no query, which may hold a key."""
    return _QUERY.sub(f"?{REDACTED}", text)


def without_echoes(text: str, secrets: Iterable[str], *, whole: bool = False) -> str:
    """The text of a server without these secrets, in all forms in which servers repeat them.

    That is: as they are, escaped as in JSON, HTML or an address, in base64 (also with other text
    before and after them, as in `Bearer KEY`), and, unless only `whole` ones count, cut after their
    first characters.
    """
    for secret in secrets:
        if len(secret) >= _SHORTEST_ECHO:
            for form in (secret, *_in_base64(secret)):
                text = _without_form(text, form, len(form) if whole else _TOLD)
    return text


@lru_cache(maxsize=64)
def _in_base64(secret: str) -> tuple[str, ...]:
    """The characters that a secret has in the base64 of any text that holds it."""
    forms = []
    for lead in range(3):
        held = b"\0" * lead + secret.encode("utf-8", "replace")
        shared = b64encode(held).decode()[-(-8 * lead // 6) : 8 * len(held) // 6]
        forms += [shared, shared.translate(str.maketrans("+/", "-_"))]
    return tuple(dict.fromkeys(forms))


def _without_form(text: str, form: str, told: int) -> str:
    signs = _signs(form)
    kept, at = [], 0
    for found in _start(form[:told]).finditer(text):
        if found.start() < at:
            continue
        end = found.end()
        for sign in signs[told:]:
            more = sign.match(text, end)
            if more is None:
                break
            end = more.end()
        kept += [text[at : found.start()], HIDDEN]
        at = end
    return "".join([*kept, text[at:]])


@lru_cache(maxsize=512)
def _start(form: str) -> re.Pattern[str]:
    # Within backslashes nothing begins that does not begin with the first of them.
    signs = "".join(sign.pattern for sign in _signs(form))
    return re.compile(rf"(?:(?<!\\)|(?=[%&])){signs}")


@lru_cache(maxsize=512)
def _signs(form: str) -> tuple[re.Pattern[str], ...]:
    """For each character a pattern of the ways to write it."""
    return tuple(map(_sign, form))


@lru_cache(maxsize=512)
def _sign(character: str) -> re.Pattern[str]:
    code = f"{ord(character):x}"
    spelt = "".join(f"[{one}{one.upper()}]" if one.isalpha() else one for one in code)
    in_url = "".join(f"%(?:25)*{byte:02x}" for byte in character.encode("utf-8", "replace"))
    in_url = re.sub("[a-f]", lambda found: f"[{found[0]}{found[0].upper()}]", in_url)
    in_html = rf"&#(?:[xX]0*{spelt}|0*{ord(character)});"
    return re.compile(rf"(?:\\*{re.escape(character)}|\\+u0*{spelt}|{in_url}|{in_html})")


def known_secrets() -> tuple[str, ...]:
    """The registered secrets, and the long values of variables that are named like secrets."""
    of_environment = (
        value
        for name, value in os.environ.items()
        if _SECRET_VARIABLE.search(name.upper()) and len(value) >= _SHORTEST_SECRET
    )
    return (*_registered, *of_environment)


def _redacted_arg(value: Any) -> Any:
    if isinstance(value, Mapping):
        return redacted_args(value)
    if isinstance(value, (list, tuple)):
        return [_redacted_arg(member) for member in value]
    return redacted_spec(value) if isinstance(value, str) else value


def _without(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        text = text.replace(secret, REDACTED)
    # These two patterns are slow, and hardly a text holds what each of them needs.
    if _KEY_START.search(text):
        text = _KEY_MATERIAL.sub(REDACTED, text)
    text = _BEARER.sub(lambda found: f"{found[1]} {REDACTED}", text)
    if "://" in text and "@" in text:
        text = _USER_IN_URL.sub(rf"\1{REDACTED}@", text)
    return text

"""The arguments of an `openai` model, including address and key."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Callable, Collection, Mapping
from functools import partial
from ipaddress import ip_address
from typing import Any, Literal
from urllib.parse import quote, unquote, urlsplit

import msgspec

from harness.base.errors import UsageError, did_you_mean
from harness.base.key_files import key_text
from harness.base.redaction import keep_out
from harness.contracts.identity import Identity
from harness.contracts.model import ModelSettings, Sampling
from harness_models.arguments import bad, count_of, json_or_text, reject_constant, template_kwargs
from harness_models.openai_wire import LARGEST_BODY

KIND = "openai"

DEFAULT_KEY_ENV = "OPENAI_API_KEY"
AZURE_KEY_ENV = "AZURE_OPENAI_API_KEY"
AZURE_TOKEN_ENV = "AZURE_OPENAI_AD_TOKEN"
BASE_URL_ENV = "OPENAI_BASE_URL"
DEFAULT_HOST = "api.openai.com"
ENDPOINTS = ("chat", "completions")
"""The endpoints that an argument may name; an embedder's is always the other."""

PATHS = {"chat": "chat/completions", "completions": "completions", "embeddings": "embeddings"}

EXTRA = "extra_body"

SET_BY = {
    "model": "model=NAME",
    "messages": "the task's prompts set it",
    "prompt": "the task's prompts set it",
    "temperature": "--gen_kwargs temperature=…",
    "top_p": "--gen_kwargs top_p=…",
    "max_tokens": "--gen_kwargs max_tokens=…",
    "max_completion_tokens": "--gen_kwargs max_tokens=…",
    "stop": "stop=TEXT, or --gen_kwargs stop=…",
    "seed": "--seed",
    "response_format": "--structured",
    "logprobs": "logprobs=true",
    "top_logprobs": "top_logprobs=N",
    "n": "--num_repeats repeats questions: the harness reads one answer of each reply",
    "stream": "leave it out: the harness reads whole answers",
    "api_key": "api_key_env=NAME, the variable that holds it",
    "echo": "leave it out: the harness reads answers without the prompt",
}
"""Fields that the harness itself sends or relies on → what sets them."""

NAME_KEY = "name the place of its key as well: api_key_env=NAME or api_key_file=FILE"
NO_KEY = "not-needed"
"""Sent if no key is set: the official client requires one, servers without keys ignore it."""

TOKENS_FIELDS = ("max_tokens", "max_completion_tokens")

OF_REQUESTS = ("system_role", "endpoint", "stop", "logprobs", "top_logprobs")
"""The arguments, with `extra_body`, that hold for every server, whoever starts it."""


class OpenAIArgs(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed `--model_args` of a served model; `harness list models openai` explains each.

    `revision` and `identity` fix the weights behind the name, and `immutable` states that the host
    never changes them: without any of these, answers are reused within one run only. Without a
    `system_role`, the first user message begins with the system text; with "auto", the server's
    first refusal decides. `api_key_env` is None if the host may not receive the usual key. `batch`
    says how the model is asked, and is in no identity.
    """

    model: str
    base_url: str | None = None
    api_key_env: str | None = DEFAULT_KEY_ENV
    api_key_file: str | None = None
    revision: str | None = None
    identity: str | None = None
    immutable: bool = False
    concurrency: int | None = None
    batch: bool | Literal["only"] = False
    max_tokens_field: str | None = None
    seed: bool = True
    system_role: bool | Literal["auto"] = True
    endpoint: Literal["chat", "completions", "embeddings"] = "chat"
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] = {}
    stop: tuple[str, ...] = ()
    logprobs: bool = False
    top_logprobs: int = 0
    thinking: bool | None = None
    azure_endpoint: str | None = None
    azure_deployment: str | None = None
    api_version: str | None = None
    max_answer_bytes: int = LARGEST_BODY
    extra_body: dict[str, Any] = {}

    @property
    def base(self) -> str:
        """The server's base URL: as given, else as the official client finds it."""
        given = self.azure_endpoint or self.base_url
        return given or os.environ.get(BASE_URL_ENV) or f"https://{DEFAULT_HOST}/v1"

    @property
    def host(self) -> str:
        """The server's host, with its port if the address names one."""
        parts = urlsplit(self.base)
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)

    @property
    def address(self) -> str:
        """The base URL for display, without credentials and query."""
        parts = urlsplit(self.base)
        return f"{parts.scheme}://{self.host}{parts.path}"

    @property
    def has_credentials(self) -> bool:
        """Whether the address has a user, which takes the place of a key."""
        return urlsplit(self.base).username is not None

    @property
    def wants_key(self) -> bool:
        """True if requests need a key: its variable was named, or the server is OpenAI's own."""
        if self.api_key_env not in (DEFAULT_KEY_ENV, None):
            return True
        return self.host == DEFAULT_HOST and not self.has_credentials

    @property
    def usual_key_env(self) -> str:
        """The variable whose key is sent to hosts of the user's choice without being named."""
        return DEFAULT_KEY_ENV if self.azure_endpoint is None else AZURE_KEY_ENV

    @property
    def tokens_field(self) -> str:
        """The server's name for the token limit: only OpenAI's own servers use the new name."""
        renamed = self.host == DEFAULT_HOST and self.endpoint == "chat"
        return self.max_tokens_field or ("max_completion_tokens" if renamed else "max_tokens")

    def url(self, path: str, *, below: str = "") -> str:
        """A path's address; Azure's addresses with a version have the path `below` a folder."""
        base = self.base.rstrip("/")
        if self.azure_endpoint is None:
            return f"{base}/{path}"
        if self.api_version is None:
            return f"{base}/openai/v1/{path}"
        return f"{base}/openai/{below}{path}?api-version={quote(self.api_version, safe='')}"

    @property
    def requests_url(self) -> str:
        """The address of requests."""
        deployment = quote(self.azure_deployment or self.model, safe="")
        return self.url(PATHS[self.endpoint], below=f"deployments/{deployment}/")


ELSEWHERE = {
    "max_retries": "--attempts N, which counts the first request too",
    "num_concurrent": "concurrency=N, or --concurrency N for all models",
}
"""Names of such arguments in other programs, and what does the same here."""


def read_each(settings: ModelSettings) -> tuple[OpenAIArgs, ...]:
    """The arguments once for each address, typed; UsageError for an unknown or unusable one."""
    known = OpenAIArgs.__struct_fields__
    values: dict[str, Any] = {"extra_body": read_extra(settings.args)}
    for name, text in settings.args.items():
        if is_extra(name):
            continue
        if name not in known:
            raise UsageError(
                f"an openai model has no argument {name!r}",
                where="--model_args",
                expected="one of " + ", ".join(known),
                hint=ELSEWHERE.get(name)
                or did_you_mean(name, known)
                or "`harness list models openai` describes each",
            )
        values[name] = _READERS.get(name, _text)(name, text)
    if "model" not in values:
        raise UsageError(
            "an openai model needs the model's name on its server",
            where="--model_args",
            found=", ".join(f"{name}=…" for name in settings.args) or "nothing",
            expected="model=NAME",
        )
    _check_combinations(values)
    of_environment = os.environ.get(BASE_URL_ENV)
    if of_environment and not values.keys() & {"base_url", "azure_endpoint"}:
        _address(BASE_URL_ENV, of_environment)
    if "azure_endpoint" in values and "api_key_file" not in values:
        values.setdefault("api_key_env", AZURE_KEY_ENV)
    each = [OpenAIArgs(**values, base_url=url) for url in values.pop("base_url", (None,))]
    if settings.args.keys() & {"api_key_env", "api_key_file"}:
        return tuple(each)
    return tuple(
        one
        if may_have_key(one.base, settings.given_hosts)
        else msgspec.structs.replace(one, api_key_env=None)
        for one in each
    )


def may_have_key(url: str, named: Collection[str] | None) -> bool:
    """True if an address may receive a key that no argument names; `named` are the user's hosts.

    Only OpenAI's own servers, this machine, and the hosts of OPENAI_BASE_URL and of the user's
    command may: not one that only a task or a settings file names.
    """
    parts = urlsplit(url)
    host = _host_with_port(url)
    if named is None or host in named or host == _host_with_port(os.environ.get(BASE_URL_ENV, "")):
        return True
    try:
        return ip_address(str(parts.hostname)).is_loopback
    except ValueError:
        own = parts.hostname == DEFAULT_HOST and parts.scheme == "https"
        return own or parts.hostname == "localhost"


def _host_with_port(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2].lower()


def _check_combinations(values: Mapping[str, Any]) -> None:
    """Raise UsageError for arguments that cannot be combined."""
    for one, other, problem in (
        ("api_key_env", "api_key_file", "the key of an openai model has two sources"),
        ("base_url", "azure_endpoint", "an openai model has two addresses"),
    ):
        if one in values and other in values:
            found, expected = f"{one} and {other}", f"{one} or {other}, not both"
            raise UsageError(problem, where="--model_args", found=found, expected=expected)
    completions = values.get("endpoint") == "completions"
    for name, needed, there in (
        ("azure_deployment", "azure_endpoint=URL", "azure_endpoint" in values),
        ("api_version", "azure_endpoint=URL", "azure_endpoint" in values),
        ("azure_deployment", "api_version=VERSION", "api_version" in values),
        ("chat_template", "endpoint=completions", completions),
        ("chat_template_kwargs", "chat_template=FILE", "chat_template" in values),
        ("top_logprobs", "logprobs=true", values.get("logprobs")),
        ("system_role", "endpoint=chat", not (completions and values.get("system_role") == "auto")),
    ):
        if name in values and not there:
            raise UsageError(
                f"{name} needs {needed}",
                where="--model_args",
                found=f"{name}={values[name]}",
                expected=f"{needed} as well, or no {name}",
                hint=_INSTEAD.get(needed),
            )
    field, extra = values.get("max_tokens_field"), values.get("extra_body", {})
    if (field in SET_BY and field not in TOKENS_FIELDS) or field in extra:
        raise UsageError(
            "max_tokens_field names a field that has another meaning",
            where="--model_args",
            found=f"max_tokens_field={field}",
            expected="the server's name for the token limit of an answer",
            hint="--gen_kwargs max_tokens=… sets the limit itself",
        )


def request_args(kind: str, given: Mapping[str, str], shared: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of OpenAIArgs that the arguments of another kind give; UsageError if wrong.

    `shared` are the fields of WeightsArgs that they give. The harness renders prompts with the chat
    template only for the completions endpoint.
    """
    try:
        values = {
            name: _READERS[name](name, text) for name, text in given.items() if name in OF_REQUESTS
        }
        if extra := read_extra(given):
            values["extra_body"] = extra
        _check_combinations(values)
    except UsageError as error:
        error.problem = error.problem.replace(KIND, kind)
        raise
    if values.get("endpoint") == "completions" and shared["chat_template"] is not None:
        values["chat_template"] = str(shared["chat_template"])
        values["chat_template_kwargs"] = dict(shared["chat_template_kwargs"])
    return values


def identity_of(
    args: OpenAIArgs, *, structured: bool, form: Mapping[str, Any] | None = None
) -> Identity:
    """The model's identity: its name and the arguments that decide its answers.

    `form` describes how prompts are rendered. The host is part of the identity unless `revision` or
    `identity` pins the weights, so that models of one name on two servers differ. Pinned weights
    are the same on every server.
    """
    pins: dict[str, Any] = {"revision": args.revision, "identity": args.identity}
    pinned = any(one is not None for one in pins.values())
    place = {"host": args.host, "deployment": args.azure_deployment}
    scope = "everywhere" if pinned or args.immutable else "run"
    found = {name: one for name, one in (pins if pinned else place).items() if one is not None}
    found |= {} if args.seed else {"seed": False}
    found |= request_details(args, form) | ({"structured": True} if structured else {})
    return Identity(kind="openai", name=args.model, details=found, scope=scope)


def request_details(args: OpenAIArgs, form: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The details of an identity that say how requests are made; `form` as in `identity_of`."""
    decides: dict[str, tuple[Any, bool]] = {
        "system_role": (args.system_role, args.system_role is not True),
        "endpoint": (args.endpoint, args.endpoint != "chat"),
        "form": (form and dict(form), form is not None),
        "stop": (list(args.stop), bool(args.stop)),
        "logprobs": (args.top_logprobs, args.logprobs),
        "extra_body": (args.extra_body, bool(args.extra_body)),
    }
    return {name: one for name, (one, is_given) in decides.items() if is_given}


def without_credentials(url: str) -> tuple[str, str | None]:
    """An address without its `user:password@`, and the header value for these credentials."""
    parts = urlsplit(url)
    if parts.username is None:
        return url, None
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host).geturl(), f"Basic {b64encode(pair.encode()).decode()}"


def read_key(named: str) -> str:
    """The key in a file; from now on it is redacted from all output."""
    key, wrong = "", None
    try:
        key = key_text(named).strip()
    except (OSError, UnicodeDecodeError) as error:
        wrong = str(error.strerror) if isinstance(error, OSError) else "not a text file"
    # A header is one line of ASCII. The message does not repeat the content: it may be a secret.
    if not (key.isascii() and key.isprintable()) or " " in key:
        wrong = "several words, or characters that keys never contain"
    if wrong or not key:
        raise UsageError(
            "the key file cannot be used",
            where=f"--model_args, api_key_file={named}",
            found=wrong or "an empty file",
            expected="a file that contains the key and nothing else",
        )
    keep_out(key)
    return key


def is_extra(name: str) -> bool:
    """True for `extra_body` and for its fields, `extra_body.NAME`."""
    return name == EXTRA or name.startswith(f"{EXTRA}.")


def read_extra(args: Mapping[str, str]) -> dict[str, Any]:
    """The fields that `extra_body={…}` and `extra_body.NAME=VALUE` add to every request."""
    found: dict[str, Any] = {}
    for name, text in args.items():
        if not is_extra(name):
            continue
        below: Any = json_or_text(text)
        if name == EXTRA:
            try:
                below = json.loads(text, parse_constant=reject_constant)
            except ValueError as error:
                hint = f"{EXTRA}.NAME=VALUE gives one field"
                raise _bad_extra(f"{EXTRA}={text}", f"a JSON object ({error})", hint=hint) from None
            if not isinstance(below, dict):
                raise _bad_extra(f"{EXTRA}={text}", "a JSON object")
        for part in reversed(name.split(".")[1:]):
            below = {part: below}
        _merge(found, below, written=f"{name}={text}")
    for field in found:
        if field in SET_BY:
            expected = "fields that the harness does not send itself"
            raise _bad_extra(f"{EXTRA} with {field!r}", expected, hint=SET_BY[field])
    return found


def _merge(into: dict[str, Any], more: Mapping[str, Any], *, written: str) -> None:
    for name, value in more.items():
        if name not in into:
            into[name] = value
        elif isinstance(into[name], dict) and isinstance(value, dict):
            _merge(into[name], value, written=written)
        else:
            raise _bad_extra(written, f"each field once: {name!r} was given before")


def _bad_extra(found: str, expected: str, *, hint: str | None = None) -> UsageError:
    return UsageError(
        "the extra fields of requests cannot be used",
        where="--model_args",
        found=found,
        expected=expected,
        hint=hint,
    )


def check_sampling(args: OpenAIArgs, sampling: Sampling) -> None:
    """Raise UsageError for sampling that OpenAI's own servers refuse, or that is set twice."""
    twice = sampling.seldom_set.keys() & args.extra_body.keys()
    if sampling.top_k is None and not twice:
        return
    name = min(twice, default="top_k")
    problem = None
    if twice:
        problem, found = f"{name} is set by the sampling and by {EXTRA}", args.extra_body[name]
    elif args.host == DEFAULT_HOST:
        problem, found = "OpenAI's own servers have no top_k", sampling.top_k
    if problem is not None:
        raise UsageError(
            problem,
            where=f"{KIND}:{args.model}",
            found=f"{name}={found}",
            expected=f"sampling without {name}",
            hint=f"--gen_kwargs {name}=null leaves it out for the candidate",
        )


def _text(name: str, text: str) -> str:
    if not text:
        raise _bad(name, text, f"{name}=VALUE")
    return text


def _choice(choices: Mapping[str, Any], expected: str, name: str, text: str) -> Any:
    """The meaning of a text that is one of the choices, in any case of letters."""
    if text.lower() not in choices:
        raise _bad(name, text, expected)
    return choices[text.lower()]


def _stop(name: str, text: str) -> tuple[str, ...]:
    """The stop texts: one text, in which \\n is a line break, or a JSON list of texts."""
    found: Any = [text.replace("\\n", "\n")]
    if text.startswith("["):
        try:
            found = json.loads(text)
        except ValueError as error:
            raise _bad(name, text, f"a JSON list ({error})") from None
    if not found or not all(isinstance(one, str) and one for one in found):
        raise _bad(name, text, "stop=TEXT, or a JSON list of texts that are not empty")
    return tuple(found)


def _address(name: str, text: str) -> str:
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise _bad(name, text, "an address such as http://127.0.0.1:8000/v1")
    if name == "azure_endpoint" and "openai" in parts.path.split("/"):
        raise _bad(name, text, "the address before /openai: the harness adds the rest")
    if any(sign in text for sign in "?#"):
        base = text.partition("?")[0].partition("#")[0]
        hint = (
            "with azure_endpoint, api_version=… gives its query" if "api-version" in text else None
        )
        raise _bad(name, text, f"{base}, without query and fragment", hint=hint)
    for path in PATHS.values():
        if text.rstrip("/").endswith(f"/{path}"):
            raise _bad(
                name, text,
                f"{text.rstrip('/').removesuffix(f'/{path}')}: the harness adds /{path}",
                hint="or set endpoint=completions" if path == PATHS["completions"] else None,
            )  # fmt: skip
    return text


def _addresses(name: str, text: str) -> tuple[str, ...]:
    """One address, or several with `;` between them."""
    each = tuple(_address(name, part.strip()) for part in text.split(";"))
    if len(set(each)) < len(each):
        raise _bad(name, text, "each address once")
    return each


def _bad(name: str, text: str, expected: str, *, hint: str | None = None) -> UsageError:
    where = "the environment" if name == BASE_URL_ENV else "--model_args"
    return bad(KIND, f"{name}={text}", expected, hint=hint, where=where)


_INSTEAD = {
    "chat_template=FILE": "extra_body.chat_template_kwargs.NAME=VALUE passes it to the server",
    "api_version=VERSION": "without api_version, model= is the deployment's name",
    "endpoint=chat": "with endpoint=completions, use system_role=true or system_role=false",
}
"""The argument that is missing → another way to the same end."""

_SWITCHES = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
_switch = partial(_choice, _SWITCHES, "true or false")

_READERS: Mapping[str, Callable[[str, str], Any]] = {
    "immutable": _switch,
    "batch": partial(_choice, {**_SWITCHES, "only": "only"}, "true, false or only"),
    "seed": _switch,
    "system_role": partial(_choice, {**_SWITCHES, "auto": "auto"}, "true, false or auto"),
    "concurrency": partial(count_of, KIND),
    "max_answer_bytes": partial(count_of, KIND),
    "base_url": _addresses,
    "azure_endpoint": _address,
    "endpoint": partial(_choice, {one: one for one in ENDPOINTS}, " or ".join(ENDPOINTS)),
    "chat_template_kwargs": lambda name, text: template_kwargs(
        KIND, text, form="NAME=VALUE, as in eos_token=</s>", strip=False
    ),
    "stop": _stop,
    "logprobs": _switch,
    "top_logprobs": partial(count_of, KIND, least=0),
    "thinking": partial(_choice, {**_SWITCHES, "auto": None}, "true, false or auto"),
}

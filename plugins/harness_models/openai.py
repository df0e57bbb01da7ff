"""A model behind any OpenAI-compatible server.

Address, key and headers follow the official client. Requests go over aiohttp directly, which sends
more than four times as many per second and saves 0.5 s of import time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from harness.base.errors import UsageError
from harness.contracts.finding import Finding, doubtful
from harness.contracts.model import CallError, Model, ModelSettings, Reply, Request
from harness_models.chat_template import Form, plain_form, template_form
from harness_models.openai_args import (
    AZURE_TOKEN_ENV,
    BASE_URL_ENV,
    DEFAULT_KEY_ENV,
    NO_KEY,
    PATHS,
    OpenAIArgs,
    check_sampling,
    identity_of,
    may_have_key,
    read_each,
    read_key,
    without_credentials,
)
from harness_models.openai_findings import (
    SERVER,
    key_finding,
    listing_finding,
    unreachable,
    unusable,
    why_there,
    withheld,
)
from harness_models.openai_jobs import Job, paid_twice, refuse_open_batches
from harness_models.openai_screen import (
    HEADERS_ENV,
    NO_SCREEN,
    Screen,
    check_header,
    custom_headers,
    secrets_in_address,
    secrets_in_headers,
)
from harness_models.openai_spread import NotConnected, spread
from harness_models.openai_wire import (
    HINTS,
    NAMED,
    SYSTEM_HINT,
    headers_with,
    is_strict,
    pointing,
    read_reply,
    read_response,
    read_status,
    refuses_system,
    without_system,
)

if TYPE_CHECKING:
    from ssl import SSLContext

    from aiohttp import BaseConnector, ClientResponse, ClientSession

BATCH_VERSION = "/v1"
"""The beginning of the addresses in a batch's lines, whatever the server's address is."""

LISTING_SECONDS = 8.0
"""The time limit for the list of models: servers send it at once, or not at all."""

CONNECT_SECONDS = 30.0
CONNECT_TO_LIST_SECONDS = 5.0
KEEPALIVE_SECONDS = 4.0
"""Shorter than the 5 s after which uvicorn (and so vLLM) closes an idle connection: a request sent
at that moment would be lost."""


def make(settings: ModelSettings) -> Model:
    """The model that the arguments describe, behind one server or several; it is not open yet."""
    return spread(read_each(settings), OpenAIModel, settings)


class OpenAIModel(Model):
    """One served model; `open` makes the client, `ask` sends one request once.

    `own` means that the harness started the server, which then gets neither key nor proxy, and is
    reached over `socket` if there is one. `fields` gives additional fields of a request, with None
    for those that are left out.
    """

    takes_batches = True
    asked_if_thinking = True
    thinking_switch = (
        "extra_body.chat_template_kwargs.enable_thinking=false or extra_body.reasoning_effort=…"
    )
    _read = staticmethod(read_reply)

    def __init__(
        self,
        args: OpenAIArgs,
        settings: ModelSettings,
        *,
        own: bool = False,
        socket: Path | None = None,
        fields: Callable[[Request], Mapping[str, Any]] = lambda request: {},
    ) -> None:
        self._form = form_of(args)
        self.identity = identity_of(
            args, structured=settings.structured, form=self._form and self._form.identity
        )
        self.concurrency = args.concurrency or settings.concurrency or self.concurrency
        self._args = args
        self._own = own
        self._trusted = may_have_key(args.base, settings.given_hosts)
        if not own:
            key = args.api_key_env if args.api_key_file is None else None
            more = (HEADERS_ENV, *NAMED.values()) if self._trusted else ()
            self.variables = (*((key,) if key else ()), BASE_URL_ENV, *more)
            self.key_files = (args.api_key_file,) if args.api_key_file else ()
        self._socket = socket
        self._fields = fields
        self._timeout = settings.attempt_timeout
        self._structured = settings.structured
        self._added: dict[str, Any] = {}
        if args.logprobs:
            name = "logprobs" if args.endpoint == "completions" else "top_logprobs"
            self._added["logprobs"] = True
            if args.top_logprobs or args.endpoint == "completions":
                self._added[name] = args.top_logprobs
        self._added |= args.extra_body
        self.stop = (*args.stop, *(self._form.stop if self._form else ()))
        self._system_role = args.system_role is not False
        self._without_logprobs = 0
        self._sent: dict[str, Job] = {}
        self._session: ClientSession | None = None
        self._screen = Screen()
        self._url = ""
        self._key_of_file: str | None = None
        self._proxy: str | None = None

    def thinks(self) -> bool | None:
        """What `thinking=` says, else what the template of texts shows; None without either."""
        form = self._form
        return form.thinks if self._args.thinking is None and form else self._args.thinking

    def require(self) -> None:
        """Raise UsageError if a named key is missing, or any key for OpenAI's own servers.

        Other servers may work without a key. Nor may batches be open that answer the same.
        """
        if not self.patient:
            # Not those that were sent since: what they answer is kept.
            self._sent = self._sent or refuse_open_batches(self)
        for name, value in custom_headers().items():
            check_header(value.replace("\t", " "), f"{HEADERS_ENV}, {name}")
        for variable in NAMED.values():
            check_header(os.environ.get(variable, ""), variable)
        if self._own:
            return
        if self._args.api_key_file is not None:
            self._key_of_file = read_key(self._args.api_key_file)
        elif self._args.api_key_env is not None:
            check_header(self._key() or "", self._args.api_key_env)
        variable = self._args.api_key_env
        if self._key() is not None or not self._args.wants_key:
            return
        raise UsageError(
            f"{variable} is not set in the environment",
            where=f"openai:{self._args.model}",
            found=f"no key for {self._args.host}{why_there(self._args)}"
            if variable == DEFAULT_KEY_ENV
            else f"api_key_env={variable}",
            expected="api_key_env=NAME, a variable that holds the key, or api_key_file=FILE",
            hint=f"export {variable} with your key, then repeat the command",
        )

    async def open(self) -> None:
        """Make the session and its connection pool; no request is sent."""
        import aiohttp

        if self._session is not None:
            return
        self.require()
        azure = self._args.azure_endpoint is not None
        headers = headers_with(self._key() or NO_KEY, azure=azure, trusted=self._trusted)
        self._url, credentials = without_credentials(self._args.requests_url)
        if credentials is not None:
            # As in the official client: credentials in the address take precedence over the key.
            headers["Authorization"] = credentials
        self._screen.know(self._secrets())
        parts = urlsplit(self._url)
        if not (self._own or not parts.hostname or proxy_bypass(parts.hostname)):
            proxies = getproxies()
            self._proxy = proxies.get(parts.scheme) or proxies.get("all")
        self._session = aiohttp.ClientSession(
            headers=headers,
            connector=self._connector(),
            timeout=aiohttp.ClientTimeout(
                total=None,
                sock_read=self._timeout,
                sock_connect=min(CONNECT_SECONDS, self._timeout),
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    def _connector(self) -> BaseConnector:
        import aiohttp

        limits = {"limit": self.concurrency, "keepalive_timeout": KEEPALIVE_SECONDS}
        if self._socket is not None:
            return aiohttp.UnixConnector(str(self._socket), **limits)
        secure = self._url.startswith("https:")
        return aiohttp.TCPConnector(ssl=trust() if secure else True, **limits)

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def ask(self, request: Request) -> Reply:
        """The server's reply to one request, or a CallError."""
        if self._session is None:
            raise RuntimeError("ask() was called before open()")
        if job := self._sent.get(request.key):
            raise paid_twice(self, job)
        as_system = self._system_role
        try:
            reply = await self._send(self._session, self._body(request))
        except CallError as error:
            has_system = any(turn.role == "system" for turn in request.messages)
            if not (as_system and has_system and refuses_system(error.status, error.detail)):
                raise self._with_context(error) from None
            if self._args.system_role != "auto":
                # Fatal: the server would refuse every other system message as well.
                detail = f"{error.detail} (--model_args: {SYSTEM_HINT})"
                raise CallError(error.cause, detail, fatal=True, status=error.status) from None
            if self._system_role:
                self._system_role = False
                self.show(
                    f"{self.identity.label}: the server accepts no system message: its text now "
                    "precedes the first user message"
                )
            return await self.ask(request)
        if self._args.logprobs and reply.logprobs is None:
            if not self._without_logprobs:
                self.show(f"{self.identity.label}: the server sent no logprobs: none are recorded")
            self._without_logprobs += 1
        return reply

    def report(self) -> dict[str, Any]:
        """Features that the server turned out to lack, and what its replies made necessary."""
        found = self._screen.report()
        if self._args.system_role == "auto" and not self._system_role:
            found["system_role"] = False
        if self._without_logprobs:
            found["replies_without_logprobs"] = self._without_logprobs
        return found

    async def check(self) -> Sequence[Finding]:
        """Findings about the key and the server's list of models."""
        key = key_finding(self._args)
        if key.state == "bad":
            return [key]
        await self.open()
        assert self._session is not None
        try:
            return [key, await self._server_finding(self._session)]
        finally:
            await self.close()

    async def _server_finding(self, session: ClientSession) -> Finding:
        import aiohttp

        address, _ = without_credentials(self._args.url("models"))
        try:
            async with session.get(
                address,
                proxy=self._proxy,
                timeout=aiohttp.ClientTimeout(
                    LISTING_SECONDS, sock_connect=CONNECT_TO_LIST_SECONDS
                ),
                allow_redirects=False,
            ) as response:
                received = await bounded_body(response, self._args.max_answer_bytes)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            failed = connection_error(error, self._screen)
            if failed.cause == "timeout":
                late = f"does not list its models within {LISTING_SECONDS:g} s"
                return doubtful(SERVER, f"{self._args.address} {late}")
            return unreachable(self._args, failed.detail)
        except CallError as error:
            return unreachable(self._args, error.detail)
        if 300 <= response.status < 400:
            elsewhere = f"{pointing(response.headers)}, and no redirect is followed"
            return unusable(self._args, f"answers {response.status}: {elsewhere}")
        keyed = self._key() is not None or self._args.has_credentials
        return listing_finding(
            self._args, response.status, received, keyed=keyed, screen=self._screen
        )

    def batch_line(self, request: Request) -> dict[str, Any]:
        """The line of a batch file for the request that `ask` would send."""
        url = f"{BATCH_VERSION}/{PATHS[self._args.endpoint]}"
        body = self._body(request)
        if self._args.azure_deployment is not None:
            body["model"] = self._args.azure_deployment  # a batch's path does not name it
        return {"method": "POST", "url": url, "body": body}

    def read_batch(self, status: int, body: object) -> Reply:
        """The reply in an answered line; CallError if it holds none."""
        if self._session is None:
            if self._args.api_key_file is not None and self._key_of_file is None:
                with suppress(UsageError):  # without its key, a file of answers is read as well
                    self._key_of_file = read_key(self._args.api_key_file)
            self._screen.know(self._secrets())
        return read_status(status, body, screen=self._screen)

    def _body(self, request: Request) -> dict[str, Any]:
        """The JSON body of a request; it has a seed only if the temperature is above 0."""
        sampling, messages = request.sampling, request.messages
        check_sampling(self._args, sampling)
        if not self._system_role:
            messages = without_system(messages)
        body: dict[str, Any] = {"model": self._args.model}
        if self._form is None:
            body["messages"] = [{"role": turn.role, "content": turn.content} for turn in messages]
        else:
            body["prompt"] = self._form.render(messages)
        body["temperature"] = sampling.temperature
        body[self._args.tokens_field] = sampling.limit
        if sampling.top_p is not None:
            body["top_p"] = sampling.top_p
        body.update(sampling.seldom_set)
        if sampling.stop or self.stop:
            body["stop"] = list(dict.fromkeys((*sampling.stop, *self.stop)))
        if self._args.seed and sampling.temperature > 0:
            body["seed"] = request.seed
        if self._structured and (schema := request.schema) is not None:
            shape = {"name": "answer", "schema": schema, "strict": is_strict(schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        body |= self._added
        fields = self._fields(request)
        return {
            name: one for name, one in (body | fields).items() if fields.get(name, one) is not None
        }

    async def _send(self, session: ClientSession, body: dict[str, Any]) -> Reply:
        import aiohttp

        try:
            async with session.post(
                self._url,
                data=msgspec.json.encode(body),
                proxy=self._proxy,
                allow_redirects=False,
            ) as response:
                received = await bounded_body(response, self._args.max_answer_bytes)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise connection_error(error, self._screen) from None
        return read_response(
            response.status,
            response.headers,
            received,
            content_type=response.content_type,
            screen=self._screen,
            read=self._read,
        )

    def _secrets(self) -> list[str]:
        """Everything in requests that no text of the server may show."""
        found = [*secrets_in_headers(custom_headers()), os.environ.get(AZURE_TOKEN_ENV, "")]
        if not self._own:
            found += [self._key() or "", *secrets_in_address(self._args.base)]
        return found

    def _key(self) -> str | None:
        if self._own:
            return None
        if self._args.api_key_file is not None:
            return self._key_of_file
        variable = self._args.api_key_env
        return None if variable is None else os.environ.get(variable, "").strip() or None

    def _with_context(self, error: CallError) -> CallError:
        """The same error with the address, the key's source or a hint in its detail."""
        address, detail = self._args.address, error.detail
        hint = next((hint for pattern, hint in HINTS if pattern.search(detail)), None)
        if error.cause == "bad_request" and hint is not None:
            error.detail = f"{detail} (--model_args: {hint})"
        elif self._own:
            return error
        elif error.cause == "auth":
            place = self._args.api_key_file or self._args.api_key_env
            unset = withheld(self._args) if place is None else f"{place} is not set"
            received = f"the key in {place}" if self._key() else f"no key: {unset}"
            error.detail = f"{detail} ({address} received {received})"
        elif error.cause == "not_found":
            error.detail = f"{detail} (requested {self._args.model!r} from {address})"
        elif error.cause == "connection":
            error.detail = f"{address}: {detail}"
        return error


def form_of(args: OpenAIArgs) -> Form | None:
    """The form that renders messages to one text; None if they are sent as messages."""
    if args.endpoint != "completions":
        return None
    if args.chat_template is None:
        return plain_form()
    return template_form(Path(args.chat_template).expanduser(), args.chat_template_kwargs)


def trust() -> SSLContext:
    """The trusted certificates: SSL_CERT_FILE, else SSL_CERT_DIR, else the system's.

    The official client trusts the same certificates.
    """
    import ssl

    if file := os.environ.get("SSL_CERT_FILE"):
        return ssl.create_default_context(cafile=file)
    if folder := os.environ.get("SSL_CERT_DIR"):
        return ssl.create_default_context(capath=folder)
    known = ssl.get_default_verify_paths()
    if sys.platform == "linux" and known.cafile is not None:
        # Read once: truststore reads this file at every handshake.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(known.cafile, known.capath)
        return context
    import truststore

    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def bounded_body(response: ClientResponse, most: int) -> bytes:
    """The body of a response, decompressed; CallError, after `most` bytes, if it is larger.

    It is read in parts: a small compressed body can stand for gigabytes.
    """
    parts, size = [], 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > most:
            response.close()
            raise CallError(
                "bad_response",
                f"HTTP {response.status}: the answer has more than max_answer_bytes={most}",
                status=response.status,
            )
    return b"".join(parts)


def connection_error(error: BaseException, screen: Screen = NO_SCREEN) -> CallError:
    """The CallError for a request without an answer: a timeout or a connection problem."""
    import aiohttp

    late = isinstance(error, TimeoutError)
    never_sent = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
    # When connecting takes too long, the operating system raises a TimeoutError of its own.
    connecting = isinstance(error, aiohttp.ConnectionTimeoutError | aiohttp.ClientOSError)
    cause = "timeout" if late and not connecting else "connection"
    forged = isinstance(error, aiohttp.ClientConnectorCertificateError)
    reason: object = error
    if isinstance(error, aiohttp.ClientConnectorError):
        reason = error.os_error
    elif isinstance(error, aiohttp.ClientResponseError):
        # A proxy's, whose own text has the proxy's address with its password.
        reason = f"the proxy answers {error.status}: {error.message}"
    text = screen.error(" ".join(str(reason).split())) or type(error).__name__
    kind = NotConnected if isinstance(error, never_sent) and not forged else CallError
    return kind(cause, text, retryable=not forged)

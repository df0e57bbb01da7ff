"""A model behind any OpenAI-compatible server.

Address, key and headers are those of the official client, as its users know them; requests go over
aiohttp directly, which sends more than four times as many a second and imports 0.5 s sooner.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from harness.base.errors import UsageError, did_you_mean
from harness.contracts.finding import Finding, bad, bad_by, doubtful, good
from harness.contracts.model import Batches, CallError, Model, ModelSettings, Reply, Request
from harness_models.chat_template import Form, plain_form, template_form
from harness_models.openai_args import (
    DEFAULT_KEY_ENV,
    NO_KEY,
    PATHS,
    OpenAIArgs,
    address_of,
    base_url_of,
    host_of,
    identity_of,
    logprob_fields,
    models_url_of,
    read_args,
    read_key,
    tokens_field_of,
    url_of,
    wants_key,
    without_credentials,
)
from harness_models.openai_wire import (
    SYSTEM_HINT,
    headers_with,
    hint_for,
    read_response,
    read_status,
    refuses_system,
    request_body,
)

if TYPE_CHECKING:
    from ssl import SSLContext

    from aiohttp import BaseConnector, ClientSession

HIDDEN = b"***"
"""Stands where a server repeated the key that it was sent."""

BATCH_VERSION = "/v1"
"""What the addresses in lines of a batch begin with, wherever the batch is sent."""

FOLDED = "what the system says stands before the first user message"

KEY, SERVER = "key", "server"
LISTING_SECONDS = 8.0
"""For a server that lists its models: it does so at once, or not at all."""

SHOWN_NAMES = 6
"""How many names of models are told where one is not among them."""

ASK = "`harness doctor --ask` asks the model one small question"

CONNECT_SECONDS = 30.0
KEEPALIVE_SECONDS = 4.0
"""Shorter than the 5 s after which uvicorn, and with it vLLM, hangs up on an idle connection: one
that is taken up again at that very moment loses its request."""


def make(settings: ModelSettings) -> Model:
    """The model that the arguments describe; nothing is opened yet."""
    return OpenAIModel(read_args(settings), settings)


class OpenAIModel(Model):
    """One served model; `open` makes the client, `ask` sends one request once.

    A server of our `own` is asked without key or proxy, those are for others, and over its `socket`
    where it has one. `fields` gives what else goes along with a request.
    """

    takes_batches = True

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
        self._socket = socket
        self._fields = fields
        self._timeout = settings.attempt_timeout
        self._structured = settings.structured
        self._tokens_field = tokens_field_of(args)
        self._added = {**logprob_fields(args), **args.extra_body}
        self._stop = (*args.stop, *(self._form.stop if self._form else ()))
        self._system_role = args.system_role is not False
        self._without_logprobs = 0
        self._session: ClientSession | None = None
        self._url = ""
        self._credentials = ""
        self._key_of_file: str | None = None
        self._proxy: str | None = None

    def require(self) -> None:
        """Raise UsageError where the key is not where it is said to be, or OpenAI's own wants one.

        Other servers may well be asked without.
        """
        if self._own:
            return
        if self._args.api_key_file is not None:
            self._key_of_file = read_key(self._args.api_key_file)
        variable = self._args.api_key_env
        if self._key() is not None or not wants_key(self._args):
            return
        raise UsageError(
            f"the environment holds no {variable}",
            where=f"openai:{self._args.model}",
            found=f"no key for {host_of(self._args)}"
            if variable == DEFAULT_KEY_ENV
            else f"api_key_env={variable}",
            expected="the name of a variable that holds the key, or api_key_file=FILE",
            hint=f"export {variable} with your key in it, then give the same command again",
        )

    async def open(self) -> None:
        """Make the session and its pool; no request is sent."""
        import aiohttp

        if self._session is not None:
            return
        self.require()
        headers = headers_with(self._key() or NO_KEY, azure=self._args.azure_endpoint is not None)
        self._url, credentials = without_credentials(url_of(self._args))
        if credentials is not None:
            # As the official client does: what stands in the address goes before the key.
            headers["Authorization"] = credentials
            self._credentials = credentials.removeprefix("Basic ")
        self._proxy = None if self._own else proxy_for(self._url)
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

        if self._socket is not None:
            return aiohttp.UnixConnector(
                path=str(self._socket), limit=self.concurrency, keepalive_timeout=KEEPALIVE_SECONDS
            )
        return aiohttp.TCPConnector(
            limit=self.concurrency,
            keepalive_timeout=KEEPALIVE_SECONDS,
            ssl=trust() if self._url.startswith("https:") else True,
        )

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def ask(self, request: Request) -> Reply:
        """The server's reply to one request, or a CallError."""
        if self._session is None:
            raise RuntimeError("the model is asked before it was opened")
        as_system = self._system_role
        try:
            reply = await self._send(self._session, self._body(request))
        except CallError as error:
            if not (as_system and speaks_as_system(request) and self._refused(error)):
                raise self._explained(error) from None
            return await self._asked_of_the_user(request, error)
        if self._args.logprobs and reply.logprobs is None:
            self._lacks_logprobs()
        return reply

    def report(self) -> dict[str, Any]:
        """What the server turned out to lack."""
        found: dict[str, Any] = {}
        if self._args.system_role == "auto" and not self._system_role:
            found["system_role"] = False
        if self._without_logprobs:
            found["replies_without_logprobs"] = self._without_logprobs
        return found

    async def check(self) -> Sequence[Finding]:
        """Whether there is a key, and what the server's list of models tells."""
        key = key_finding(self._args)
        if key.state == "bad":
            return [key]
        opened = self._session is None
        await self.open()
        try:
            return [key, *await self._listing_findings()]
        finally:
            if opened:
                await self.close()

    async def _listing_findings(self) -> Sequence[Finding]:
        import aiohttp

        assert self._session is not None, "opened by `check`"
        address, _ = without_credentials(models_url_of(self._args))
        try:
            async with self._session.get(
                address, proxy=self._proxy, timeout=aiohttp.ClientTimeout(total=LISTING_SECONDS)
            ) as response:
                received = self._without_secrets(await response.read())
        except TimeoutError:
            return [unreachable(self._args, f"no answer within {LISTING_SECONDS:g} s")]
        except (aiohttp.ClientError, OSError) as error:
            return [unreachable(self._args, lost(error).detail)]
        listing = Listing(status=response.status, received=received)
        keyed = self._key() is not None or bool(self._credentials)
        return list(listing_findings(self._args, listing, keyed=keyed))

    def batch_line(self, request: Request) -> dict[str, Any]:
        """A line of a batch that asks for the same as `ask` does."""
        url = f"{BATCH_VERSION}/{PATHS[self._args.endpoint]}"
        body = self._body(request)
        if self._args.azure_deployment is not None:
            body["model"] = self._args.azure_deployment  # no path names it in a batch
        return {"method": "POST", "url": url, "body": body}

    def read_batch(self, status: int, body: object) -> Reply:
        """The reply in an answered line; raises CallError where it holds none."""
        return read_status(status, body)

    def batches(self) -> Batches:
        """The batch service beside the server; at Azure a token stands in for a missing key."""
        from harness_models.openai_batches import OpenAIBatches, azure_token

        args, token = self._args, None
        if args.azure_endpoint is not None and args.api_key_file is None and self._key() is None:
            token = azure_token()
        if token is None:
            self.require()
        return OpenAIBatches(args, self._key(), token)

    def _body(self, request: Request) -> dict[str, Any]:
        body = request_body(
            request,
            model=self._args.model,
            tokens_field=self._tokens_field,
            seeded=self._args.seed,
            structured=self._structured,
            system_role=self._system_role,
            prompt=self._form and self._form.render,
            stop=self._stop,
            added=self._added,
        )
        return body | self._fields(request)

    def _refused(self, error: CallError) -> bool:
        return not self._own and refuses_system(error.status, error.detail)

    async def _asked_of_the_user(self, request: Request, refusal: CallError) -> Reply:
        """The reply once the system's words are the user's, where that was left to the server."""
        if self._args.system_role != "auto":
            # Whatever else the system says would be refused as well.
            detail = f"{refusal.detail} (--model_args: {SYSTEM_HINT})"
            raise CallError(refusal.cause, detail, fatal=True, status=refusal.status)
        if self._system_role:
            self._system_role = False
            self.show(f"openai:{self._args.model}: no message of the system is taken: {FOLDED}")
        return await self.ask(request)

    def _lacks_logprobs(self) -> None:
        if not self._without_logprobs:
            self.show(f"openai:{self._args.model}: the server sent no logprobs: none are kept")
        self._without_logprobs += 1

    async def _send(self, session: ClientSession, body: dict[str, Any]) -> Reply:
        import aiohttp

        try:
            async with session.post(
                self._url, data=msgspec.json.encode(body), proxy=self._proxy
            ) as response:
                received = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise lost(error) from None
        return read_response(
            response.status,
            response.headers,
            self._without_secrets(received),
            content_type=response.content_type,
        )

    def _without_secrets(self, received: bytes) -> bytes:
        # Before anything is cut to a readable length: half a key would not be recognised.
        for secret in self._secrets():
            received = received.replace(secret.encode(), HIDDEN)
        return received

    def _secrets(self) -> list[str]:
        return [secret for secret in (self._key(), self._credentials) if secret]

    def _key(self) -> str | None:
        if self._own:
            return None
        if self._args.api_key_file is not None:
            return self._key_of_file
        return os.environ.get(self._args.api_key_env, "").strip() or None

    def _explained(self, error: CallError) -> CallError:
        """The same error with what its reader must know."""
        if self._own:
            return error
        key, detail = self._key(), error.detail
        if error.cause == "auth":
            place = self._args.api_key_file or self._args.api_key_env
            source = f"the key in {place}" if key else "no key"
            unset = "" if key else f": {self._args.api_key_env} is not set"
            detail = f"{detail} ({address_of(self._args)} was sent {source}{unset})"
        elif error.cause == "not_found":
            detail = f"{detail} (asked {address_of(self._args)} for {self._args.model!r})"
        elif error.cause == "connection":
            detail = f"{address_of(self._args)}: {detail}"
        elif error.cause == "bad_request" and (hint := hint_for(detail)):
            detail = f"{detail} (--model_args: {hint})"
        error.detail = detail
        return error


def form_of(args: OpenAIArgs) -> Form | None:
    """How messages become one text; None where they are sent as they are."""
    if args.endpoint == "chat":
        return None
    if args.chat_template is None:
        return plain_form()
    return template_form(Path(args.chat_template).expanduser(), args.chat_template_kwargs)


def speaks_as_system(request: Request) -> bool:
    """Whether a request has a message of the system."""
    return any(turn.role == "system" for turn in request.messages)


def trust() -> SSLContext:
    """The certificates of SSL_CERT_FILE, else of SSL_CERT_DIR, else those that the system trusts.

    The official client trusts the same.
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


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for an address, None where it names none."""
    parts = urlsplit(url)
    if not parts.hostname or proxy_bypass(parts.hostname):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def lost(error: BaseException) -> CallError:
    """Why no answer came: a timeout, or a connection that was refused, reset or never made."""
    import aiohttp

    late = isinstance(error, TimeoutError)
    # The operating system gives up on connecting with a TimeoutError of its own.
    connecting = isinstance(error, aiohttp.ConnectionTimeoutError | aiohttp.ClientOSError)
    cause = "timeout" if late and not connecting else "connection"
    forged = isinstance(error, aiohttp.ClientConnectorCertificateError)
    reason = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    text = " ".join(str(reason).split()) or type(error).__name__
    return CallError(cause, text, retryable=not forged)


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """How a server answered `GET /models`."""

    status: int
    received: bytes


def key_finding(args: OpenAIArgs) -> Finding:
    """Where the key is, and whether it is there; never the key itself."""
    if urlsplit(base_url_of(args)).username is not None:
        return good(KEY, "stands in the address")
    if args.api_key_file is not None:
        try:
            read_key(args.api_key_file)
        except UsageError as error:
            return bad_by(KEY, error)
        return good(KEY, f"stands in the file {args.api_key_file}")
    if os.environ.get(args.api_key_env, "").strip():
        return good(KEY, f"{args.api_key_env} is set")
    unset = f"{args.api_key_env} is not set"
    if wants_key(args):
        return bad(
            KEY,
            unset,
            f"set {args.api_key_env}, or name a file that holds the key with api_key_file",
        )
    return good(KEY, f"{unset}: the server is asked without one")


def unreachable(args: OpenAIArgs, why: str) -> Finding:
    """The finding of a server that gave no answer at all."""
    usual = "azure_endpoint" if args.azure_endpoint else "base_url"
    given = usual if args.base_url or args.azure_endpoint else "OPENAI_BASE_URL or base_url"
    return bad(
        SERVER,
        f"{address_of(args)} cannot be reached: {why}",
        f"start the server there, or mend {given}",
    )


def listing_findings(args: OpenAIArgs, listing: Listing, *, keyed: bool) -> Iterator[Finding]:
    """What an answer to `GET /models` tells of address, key and the model's name."""
    address, status = address_of(args), listing.status
    if status in (401, 403):
        said = f"{address} answers {status}: it {'refuses the key' if keyed else 'wants a key'}"
        place = args.api_key_file or args.api_key_env
        yield bad(SERVER, said, f"put one that it takes into {place}")
    elif status >= 500:
        yield bad(SERVER, f"{address} answers {status}: {_beginning(listing)}", "look at its log")
    elif status >= 400:
        whole = args.azure_endpoint or urlsplit(address).path.rstrip("/").endswith("/v1")
        ends = "" if whole else "does it end in /v1? "
        yield doubtful(
            SERVER,
            f"{address} answers, but does not list its models ({status}), so {args.model!r} may "
            "be none of them",
            f"{ends}{ASK}",
        )
    else:
        names = _names_in(listing.received)
        if names is None:
            yield bad(
                SERVER,
                f"{address} answers {status}, but not as a server of the OpenAI protocol: "
                f"{_beginning(listing)}",
                "mend base_url: it usually ends in /v1",
            )
        else:
            yield _name_finding(args, names, keyed=keyed)


def _name_finding(args: OpenAIArgs, names: list[str], *, keyed: bool) -> Finding:
    to_whom = "to this key" if keyed else "without a key"
    many = f"{len(names):,} model{'' if len(names) == 1 else 's'}"
    lists = f"{address_of(args)} lists {many} {to_whom}"
    if args.azure_endpoint is not None:
        deployed = args.azure_deployment or args.model
        return doubtful(SERVER, f"{lists}, and does not tell whether {deployed!r} is deployed", ASK)
    if args.model in names:
        return good(SERVER, f"{lists}, {args.model!r} among them")
    shown = ", ".join(names[:SHOWN_NAMES]) + (", …" if len(names) > SHOWN_NAMES else "")
    return bad(
        SERVER,
        f"{lists}, and {args.model!r} is none of them" + (f": {shown}" if names else ""),
        did_you_mean(args.model, names)
        or f"mend the model's name; where it is another name of one of them, {ASK}",
    )


def _names_in(received: bytes) -> list[str] | None:
    """The names in a list of models; None for what is no such list."""
    try:
        body: Any = msgspec.json.decode(received)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    models = body.get("data") if isinstance(body, dict) else None
    if not isinstance(models, list):
        return None
    return [str(one["id"]) for one in models if isinstance(one, dict) and "id" in one]


def _beginning(listing: Listing) -> str:
    """The beginning of what a server sent."""
    text = " ".join(listing.received[:400].decode("utf-8", "replace").split())
    return (text[:120] + "…" if len(text) > 120 else text) or "nothing"

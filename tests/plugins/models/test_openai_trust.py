"""Which certificates a model behind https is trusted by: those that the official client trusts."""

import shutil
import ssl
import subprocess
import sys
from types import SimpleNamespace

import pytest
import trustme
import truststore
from aiohttp import web
from aiohttp.test_utils import TestServer
from builders.requests import make_request
from harness_models import openai

from harness.contracts.model import CallError, ModelSettings

REQUEST = make_request("Hello")
REPLY = {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def authority(tmp_path):
    """A certificate authority that nobody knows, in `authority.pem`."""
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    return made


@pytest.fixture
def folder(authority, tmp_path):
    """A folder that holds its certificate, under the name by which OpenSSL looks for it."""
    if shutil.which("openssl") is None:
        pytest.skip("only openssl tells that name")
    pem = tmp_path / "authority.pem"
    command = ["openssl", "x509", "-noout", "-hash", "-in", str(pem)]
    name = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    certs = tmp_path / "certs"
    certs.mkdir()
    (certs / f"{name}.0").write_bytes(pem.read_bytes())
    return certs


async def asked(authority):
    """What a server with a certificate of this authority answers."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    app = web.Application()

    async def answer(request):
        return web.json_response(REPLY)

    app.router.add_post("/v1/chat/completions", answer)
    server = TestServer(app, host="localhost")
    await server.start_server(ssl=context)
    url = f"https://localhost:{server.port}/v1"
    model = openai.make(ModelSettings(args={"model": "m", "base_url": url}))
    await model.open()
    try:
        return (await model.ask(REQUEST)).text
    finally:
        await model.close()
        await server.close()


async def test_an_authority_that_nobody_knows_is_refused_for_good(authority):
    with pytest.raises(CallError, match="certificate verify failed") as caught:
        await asked(authority)
    assert (caught.value.cause, caught.value.retryable) == ("connection", False)


async def test_the_authorities_of_a_file_are_trusted(authority, tmp_path, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    assert await asked(authority) == "ok"


async def test_the_authorities_of_a_folder_are_trusted(authority, folder, monkeypatch):
    monkeypatch.setenv("SSL_CERT_DIR", str(folder))
    assert await asked(authority) == "ok"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system has no such file")
@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
async def test_what_a_variable_names_stands_in_for_the_system(
    authority, tmp_path, monkeypatch, variable
):
    system(monkeypatch, tmp_path / "authority.pem")
    assert await asked(authority) == "ok"
    (tmp_path / "others").mkdir()
    other = tmp_path / "others" / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    monkeypatch.setenv(variable, str(other if variable == "SSL_CERT_FILE" else other.parent))
    with pytest.raises(CallError, match="certificate verify failed"):
        await asked(authority)


def test_where_openssl_knows_no_file_the_system_is_asked(monkeypatch):
    system(monkeypatch, None)
    assert isinstance(openai.trust(), truststore.SSLContext)


def system(monkeypatch, file):
    """Have the system's store be one file, or none."""
    found = SimpleNamespace(cafile=file and str(file), capath=None)
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: found)

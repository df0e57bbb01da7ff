"""A made-up vllm that can be found, and a made-up `nvidia-smi`."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from harness_models import hf, vllm
from harness_models.server import interpreter
from harness_models.server.served import Engine, ServedModel

from harness.contracts.identity import Identity
from harness.contracts.model import ModelSettings
from harness.testing import FaultyServer

FAKE_SERVER = Path(__file__).with_name("fake_server.py")
SERVER = """
import argparse
parser = argparse.ArgumentParser(prog="api_server.py")
parser.add_argument("--optimization-level", type=int)
parser.add_argument("--max-num-seqs", type=int)
parser.add_argument("--max-model-len", type=int)
parser.add_argument("--nnodes", type=int)
if __name__ == "__main__":
    parser.parse_args()
"""

SERVE = """
import argparse
parser = argparse.ArgumentParser(prog="main.py")
serve = parser.add_subparsers(dest="subparser").add_parser("serve")
serve.add_argument("model_tag", nargs="?")
serve.add_argument("--max-model-len", type=int)
serve.add_argument("--optimization-level", type=int)
if __name__ == "__main__":
    parser.parse_args()
"""

SMI = """#!/bin/sh
case "$1" in
--query-gpu=index,uuid,name,memory.total,memory.used,memory.free) cat "$0.gpus" ;;
--query-compute-apps=pid,gpu_uuid,used_memory,process_name) cat "$0.apps" ;;
--query-gpu=driver_version) sed 's/.*/570.86.15/' "$0.gpus" ;;
*) echo "Field is not a valid field to query." ; exit 2 ;;
esac
[ "$2" = --format=csv,noheader,nounits ]
"""


def packages():
    """The files of the folders in PYTHONPATH, wherever these folders are."""
    folders = [Path(place) for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    return tuple(
        (str(file.relative_to(folder)), file.read_bytes())
        for folder in folders
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.suffix != ".pyc"
    )


@pytest.fixture(scope="session", autouse=True)
def one_look():
    """The interpreter of the tests is started once for each question about the same packages."""
    said, start = {}, subprocess.run

    def run(command, **options):
        if command[0] != sys.executable:
            return start(command, **options)
        asked = (*command, packages())
        if asked not in said:
            said[asked] = start(command, **options)
        return said[asked]

    with pytest.MonkeyPatch.context() as patch:
        for module in (hf, interpreter, vllm):
            patch.setattr(module, "subprocess", SimpleNamespace(run=run))
        yield


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A vllm that can be found, and knows three arguments."""
    folder = tmp_path / "site" / "vllm" / "entrypoints" / "openai"
    folder.mkdir(parents=True)
    for each in (folder, folder.parent, folder.parent.parent):
        (each / "__init__.py").touch()
    (folder / "api_server.py").write_text(SERVER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("HARNESS_PRETRAINED", raising=False)
    return tmp_path / "site" / "vllm"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "config.json").write_text('{"max_position_embeddings": 131072}')
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    return folder


@pytest.fixture
def cuda(package, tmp_path, monkeypatch):
    """A vllm that was built for CUDA, on a machine with a driver."""
    torch = package.parent / "torch"
    torch.mkdir()
    (torch / "__init__.py").touch()
    (torch / "version.py").write_text("cuda: Optional[str] = '13.0'\n")
    (tmp_path / "driver").touch()
    monkeypatch.setattr("harness_models.vllm.GPU_DEVICES", (str(tmp_path / "driver"),))


@pytest.fixture
def smi(tmp_path, monkeypatch):
    """Has `nvidia-smi` tell these GPUs, or so many free H100s, and these processes from now on."""
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(SMI)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def tell(gpus, apps=""):
        if isinstance(gpus, int):
            row = "{0}, GPU-{0}a8e1d0c, NVIDIA H100 80GB HBM3, 81559, 4, 80994\n"
            gpus = "".join(map(row.format, range(gpus)))
        program.with_name("nvidia-smi.gpus").write_text(gpus)
        program.with_name("nvidia-smi.apps").write_text(apps)
        return program

    return tell


@pytest.fixture
def server():
    """A running server without faults."""
    with FaultyServer() as server:
        yield server


@pytest.fixture
async def serve_model(tmp_path):
    """Makes models behind the fake server, given flags of it; all are closed after the test."""
    made = []

    def make(*flags, tell=lambda line: None, listens_on="socket", settings=None, **engine):
        def command(place):
            option = "--port" if listens_on == "port" else "--uds"
            starts = str(tmp_path / "starts")
            fake = (sys.executable, "-I", str(FAKE_SERVER), option, str(place))
            return [*fake, "--starts", starts, *flags]

        usual = {"identity": Identity(kind="fake", name="tiny"), "model": "tiny", "concurrency": 4}
        served = Engine(command=command, listens_on=listens_on, **{**usual, **engine})
        model = ServedModel(served, ModelSettings(args={}, **(settings or {})))
        model.attach_log(tmp_path / "engines", tell)
        made.append(model)
        return model

    yield make
    for model in made:
        await model.close()


@pytest.fixture
def serve(package):
    """The made-up vllm has the command `vllm serve`, and is version 0.33.0."""
    cli = package / "entrypoints" / "cli"
    cli.mkdir()
    (cli / "__init__.py").touch()
    (cli / "serve.py").write_text("class ServeSubcommand: ...")
    (cli / "main.py").write_text(SERVE)
    (package / "_version.py").write_text("version: str\n__version__ = version = '0.33.0'\n")
    about = package.parent / "vllm-0.33.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.33.0\n")

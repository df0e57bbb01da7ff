import json

from builders.processes import run_python

HEAVY = {
    "torch", "vllm", "transformers", "pandas", "pyarrow", "polars", "duckdb", "datasets",
    "huggingface_hub", "openai", "aiohttp", "httpx", "httpx2", "numpy", "scipy", "sklearn",
    "pydantic", "jsonschema", "json_repair", "jinja2", "matplotlib", "faiss", "zstandard", "pip",
    "setuptools", "pkg_resources", "gdown", "requests", "ijson",
}  # fmt: skip

TELLING = [
    ["--help"], ["tasks"], ["tasks", "--json"], ["doctor", "--settings"], ["completion", "bash"],
    *(["list", kind] for kind in ("plugins", "models", "judges", "embedders", "prompts")),
    ["list", "analyses"],
]  # fmt: skip

REPORT = """
import io, json, sys
from contextlib import redirect_stdout
from harness.cli.main import main
for words in json.loads(sys.argv[1]):
    with redirect_stdout(io.StringIO()) as said:
        try:
            main(words)
        except SystemExit:
            pass
    names = {name.split(".")[0] for name in sys.modules}
    print(json.dumps([words, said.getvalue(), sorted(names)]))
"""


def test_commands_that_only_tell_load_nothing_heavy():
    """One after the other in one process: the first that loads something is named."""
    for line in run_python(REPORT, json.dumps(TELLING)).splitlines():
        words, said, loaded = json.loads(line)
        assert said.strip(), f"{words} printed nothing, so this test would prove nothing"
        assert "harness" in loaded
        assert (words, HEAVY & {*loaded}) == (words, set())


def test_completions_and_imports_of_the_package_load_nothing_heavy():
    asked = {
        "_HARNESS_COMPLETE": "zsh_complete",
        "COMP_WORDS": "harness --tasks ",
        "COMP_CWORD": "2",
    }
    _, said, loaded = json.loads(run_python(REPORT, "[[]]", **asked).splitlines()[-1])
    assert "interests" in said
    assert HEAVY & {*loaded} == set()
    code = "import sys, harness; print(*sorted({n.split('.')[0] for n in sys.modules}))"
    assert set(run_python(code).split()) & (HEAVY | {"rich", "yaml", "asyncio"}) == set()

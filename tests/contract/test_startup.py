"""What starts in a moment stays so: the commands that only tell load no heavy module."""

import pytest
from builders.processes import run_python

HEAVY = {
    "torch", "vllm", "transformers", "pandas", "pyarrow", "polars", "duckdb", "datasets",
    "huggingface_hub", "openai", "aiohttp", "httpx", "httpx2", "numpy", "scipy", "sklearn",
    "pydantic", "jsonschema", "json_repair", "jinja2", "matplotlib", "faiss", "zstandard", "pip",
    "setuptools", "pkg_resources", "pooch", "gdown", "requests", "ijson",
}  # fmt: skip

REPORT = """
import sys
from harness.cli.main import main
try:
    main({arguments!r})
except SystemExit:
    pass
print("LOADED", *sorted({{name.split(".")[0] for name in sys.modules}}))
"""


def loaded_after(*arguments, **variables):
    """What the command printed, and the top-level names of all modules that it loaded."""
    said, _, names = run_python(REPORT.format(arguments=list(arguments)), **variables).rpartition(
        "LOADED"
    )
    return said, set(names.split())


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"], ["tasks"], ["tasks", "--json"], ["config"], ["completion", "bash"],
        ["plugins"], ["models"], ["judges"], ["embedders"], ["prompts"],
    ],
)  # fmt: skip
def test_a_command_that_only_tells_loads_nothing_heavy(arguments):
    said, loaded = loaded_after(*arguments)
    assert said.strip(), "the command printed nothing, so this test would prove nothing"
    assert "harness" in loaded
    assert loaded & HEAVY == set()


def test_completions_load_nothing_heavy():
    said, loaded = loaded_after(
        _HARNESS_COMPLETE="zsh_complete", COMP_WORDS="harness --tasks ", COMP_CWORD="2"
    )
    assert "interests" in said
    assert loaded & HEAVY == set()


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, harness; print(*sorted({n.split('.')[0] for n in sys.modules}))"
    assert set(run_python(code).split()) & (HEAVY | {"rich", "yaml", "asyncio"}) == set()

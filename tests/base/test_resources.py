"""Where task files, prompts, home folders and functions are found, and where they are not."""

import sys
from pathlib import Path

import pytest

from harness.base.errors import UsageError
from harness.base.home import expanded, home, without_home
from harness.base.named_functions import function_digest, named_function
from harness.base.resources import Bundle, first_party, package_bundle

ROOT = Path(__file__).resolve().parents[2]


def test_a_checkout_is_read_from_its_top_level_folders():
    found = first_party()
    assert found == Bundle("harness", ROOT / "task_configs", ROOT / "prompts", ROOT / "harness")


def test_an_installed_harness_is_read_from_inside_its_package(site, monkeypatch):
    site.install(
        "installed", {}, {"harness/_bundled/prompts/a.j2": "", "harness/base/resources.py": ""}
    )
    installed = site.folder / "harness"
    monkeypatch.setattr("harness.base.resources.__file__", str(installed / "base/resources.py"))

    assert first_party() == Bundle("harness", None, installed / "_bundled/prompts", installed)


def test_a_package_carries_its_folders_inside_and_is_not_imported(site):
    files = {"theirs/__init__.py": "raise SystemExit", "theirs/task_configs/a.yaml": ""}
    site.install("their-benchmark", {}, files)
    package = site.folder / "theirs"

    bundle = package_bundle("theirs.plugin")

    assert bundle == Bundle("theirs", package / "task_configs", None, package)
    assert "theirs" not in sys.modules


def test_folders_beside_a_package_count_in_a_checkout_only(site):
    site.install("theirs", {}, {"theirs/__init__.py": "", "prompts/a.j2": ""})
    assert package_bundle("theirs.plugin") is None

    (site.folder / "pyproject.toml").touch()
    found = package_bundle("theirs.plugin")
    assert found == Bundle("theirs", None, site.folder / "prompts", site.folder / "theirs")
    assert package_bundle("no_such_package_anywhere.plugin") is None


@pytest.fixture
def homeless(monkeypatch):
    """A process without HOME, whose user has no name."""

    def nobody(path):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", nobody)
    monkeypatch.setattr(Path, "home", lambda: nobody(None))


def test_a_home_folder_is_expanded(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home() == tmp_path
    assert expanded("~/x") == tmp_path / "x"
    assert expanded("/x") == Path("/x")


def test_the_name_of_the_home_folder_is_hidden_as_json_and_addresses_spell_it(monkeypatch):
    monkeypatch.setenv("HOME", "/home/josé b")
    for path in ("/home/josé b", r"/home/jos\u00e9 b", "/home/jos%C3%A9%20b"):
        assert without_home(f"{path}/x and {path}") == "~/x and ~"
        assert without_home(f"{path}c and {path}-2") == f"{path}c and {path}-2"


@pytest.mark.usefixtures("homeless")
def test_without_a_home_folder_a_path_in_it_is_a_usage_error():
    assert home() is None
    with pytest.raises(UsageError, match="cannot be found") as caught:
        expanded("~/x", where="HARNESS_CACHE")
    assert (caught.value.where, caught.value.found) == ("HARNESS_CACHE", "~/x")


@pytest.mark.usefixtures("homeless")
def test_without_a_home_folder_settings_are_read_and_the_store_asks_for_a_place(
    monkeypatch, tmp_path
):
    from harness.calls.store import default_path
    from harness.cli.settings import read_settings, user_file

    for variable in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "HARNESS_CACHE"):
        monkeypatch.delenv(variable, raising=False)
    assert read_settings(user_file()) is None
    (tmp_path / "harness.toml").write_text("model = 'baseline'")
    assert read_settings(tmp_path / "harness.toml").values == {"model": "baseline"}
    with pytest.raises(UsageError, match="cannot be found"):
        default_path()


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    """Writes a module into the current folder, which Python does not look into by itself."""
    monkeypatch.chdir(tmp_path)

    def write(name, source):
        (tmp_path / f"{name}.py").write_text(source)

    return write


def test_a_function_is_found_in_the_current_folder_and_a_broken_module_named(in_folder):
    in_folder("own_filter_of_a_test", "def keep(row):\n    return row\n")
    before = list(sys.path)
    assert named_function("own_filter_of_a_test:keep", option="--filter")(1) == 1
    assert sys.path == before
    for wrong in ("own_filter_of_a_test", "own_filter_of_a_test:drop", "no_such_module_here:f"):
        with pytest.raises(UsageError, match="--filter"):
            named_function(wrong, option="--filter")
    in_folder("broken_filter_of_a_test", "1 / 0\n")
    with pytest.raises(UsageError, match="--filter") as error:
        named_function("broken_filter_of_a_test:keep", option="--filter")
    assert error.value.found == "broken_filter_of_a_test:keep: ZeroDivisionError: division by zero"


def test_the_digest_changes_with_the_file_and_runs_nothing_of_it(in_folder):
    in_folder("own_linker_of_a_test", "raise RuntimeError\n")
    first = function_digest("own_linker_of_a_test:find", option="extractor")
    in_folder("own_linker_of_a_test", "raise RuntimeError  # changed\n")
    assert function_digest("own_linker_of_a_test:find", option="extractor") != first


@pytest.mark.parametrize(
    "wrong",
    ["os:system", "shutil:rmtree", "sys:exit", "no_such_module_here:f", "no.such.module:f", "json"],
)
def test_a_module_of_python_or_without_a_file_is_refused(wrong):
    with pytest.raises(UsageError, match="that extractor names cannot be used"):
        function_digest(wrong, option="extractor")

"""Home folders that there are, and that there are not."""

from pathlib import Path

import pytest

from harness.base.errors import UsageError
from harness.base.home import expanded, home, without_home


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

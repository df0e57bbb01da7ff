"""What is told of the installation, the plugins and the store."""

import sqlite3

from harness import registry as plugin_manager
from harness.calls.store import Store
from harness.cli.doctor import installation, plugins, store
from harness.contracts.finding import bad, doubtful, good

METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"


def distribution(folder, name, version, *, requires=(), points=""):
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = "".join(f"Requires-Dist: {one}\n" for one in requires)
    (info / "METADATA").write_text(METADATA.format(name=name, version=version) + lines)
    (info / "entry_points.txt").write_text(points)


def test_libraries_are_held_to_what_is_asked_of_them(tmp_path, monkeypatch):
    distribution(tmp_path, "acmefit", "2.5")
    distribution(tmp_path, "acmeold", "1.9")
    distribution(
        tmp_path, "acme", "1",
        requires=["acmefit>=2.0", "acmeold>=2.0", "acmegone>=3", "acmemore; extra == 'more'"],
    )  # fmt: skip
    monkeypatch.syspath_prepend(str(tmp_path))
    old, gone, versions = installation("acme")
    assert old == bad(
        "installation", "found acmeold 1.9; expected acmeold>=2.0", "pip install 'acmeold>=2.0'"
    )
    assert gone == bad(
        "installation", "found no acmegone; expected acmegone>=3", "pip install 'acmegone>=3'"
    )
    assert (versions.state, versions.says.partition(";")[0]) == ("good", "harness 1")


def test_a_broken_plugin_and_a_misspelt_hook_are_told(tmp_path, monkeypatch):
    (tmp_path / "acme_broken.py").write_text("import acme_is_not_here\n")
    (tmp_path / "acme_misspelt.py").write_text(
        "from harness import hookimpl\n\n@hookimpl\ndef register_model(register):\n    pass\n"
    )
    points = "[harness.plugins]\nbroken = acme_broken\nmisspelt = acme_misspelt\n"
    distribution(tmp_path, "acme", "1.0", points=points)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("HARNESS_PLUGINS", "broken,misspelt")
    plugin_manager.reset()
    try:
        broken, misspelt, loaded, left_out = plugins()
    finally:
        plugin_manager.reset()
    assert broken == bad(
        "plugins",
        "plugin 'broken' of acme could not be loaded: ModuleNotFoundError: No module named "
        "'acme_is_not_here'",
        "`harness list plugins broken` shows the traceback; install another version of acme, "
        "or uninstall it",
    )
    assert misspelt == doubtful(
        "plugins",
        "plugin 'misspelt' of acme implements 'register_model', which is no hook: did you mean "
        "'register_models'?",
        "`harness list plugins NAME` shows the details of one",
    )
    assert loaded == good("plugins", "misspelt 1.0")
    assert left_out.says.startswith("left out by HARNESS_PLUGINS: ")
    assert "interests" in left_out.says


def test_a_store_is_looked_at_and_not_changed(tmp_path):
    path = tmp_path / "calls.sqlite"
    assert list(store(path)) == [
        good("store", f"{path}; does not exist yet, the first run creates it")
    ]
    assert not path.exists()
    made = Store.open(path)
    made.put(b"0" * 16, b"x" * 20_000)
    made.close()
    before = path.read_bytes()
    (found,) = store(path)
    assert (found.state, path.read_bytes()) == ("good", before)
    assert found.says.startswith(f"{path}; 0.")


def test_what_is_no_store(tmp_path):
    text, other = tmp_path / "notes.txt", tmp_path / "other.sqlite"
    text.write_text("no database " * 100)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE a (b)")
    connection.close()
    for path, says in (
        (text, f"{text} cannot be read: file is not a database"),
        (tmp_path, f"{tmp_path} cannot be read: "),
        (other, f"{other} is not a store that this version can use"),
    ):
        (found,) = store(path)
        assert (found.state, found.says[: len(says)]) == ("bad", says)
        assert "--store FILE names another store" in found.to_do

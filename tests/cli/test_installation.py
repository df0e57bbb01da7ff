"""What is told of versions, libraries, plugins and the terminal."""

import io
import sys

from harness.cli.doctor_checks import installation

from harness import registry as plugin_manager
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
    assert list(installation.libraries("acme")) == [
        bad("libraries", "found acmeold 1.9; expected acmeold>=2.0", "pip install 'acmeold>=2.0'"),
        bad("libraries", "found no acmegone; expected acmegone>=3", "pip install 'acmegone>=3'"),
        good("libraries", "acmefit 2.5"),
    ]


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
        broken, misspelt, loaded, left_out = installation.plugins(strict=False)
        (strictly,) = [one for one in installation.plugins(strict=True) if "no hook" in one.says]
    finally:
        plugin_manager.reset()
    assert broken == bad(
        "plugins",
        "plugin 'broken' of acme could not be loaded: ModuleNotFoundError: No module named "
        "'acme_is_not_here'",
        "`harness plugins broken` shows the traceback; install another version of acme, "
        "or uninstall it",
    )
    assert misspelt == doubtful(
        "plugins",
        "plugin 'misspelt' of acme implements 'register_model', which is no hook: did you mean "
        "'register_models'?",
        "`harness plugins NAME` shows the details of one",
    )
    assert strictly.state == "bad"
    assert loaded == good("plugins", "misspelt 1.0")
    assert left_out.says.startswith("left out by HARNESS_PLUGINS: ")
    assert "interests" in left_out.says


def test_a_terminal_that_cannot_show_everything_is_told(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
    assert list(installation.terminal()) == [
        doubtful(
            "terminal",
            "the output is written in latin-1, which cannot show all characters of people and "
            "models",
            "export PYTHONUTF8=1",
        )
    ]
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="UTF8"))
    assert list(installation.terminal()) == []

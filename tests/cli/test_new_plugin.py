from pathlib import Path

import pytest

from harness.base.errors import UsageError
from harness.cli.main import main
from harness.cli.scaffold import SIMPLE, files_of, package_name


def test_a_package_is_written_and_three_lines_say_what_to_do(tmp_path, capsys):
    assert main(["new-plugin", "my-bench", "--into", str(tmp_path)]) == 0
    folder = tmp_path / "my-bench"
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert files == {
        "pyproject.toml", "README.md", ".gitignore", "tests/test_my_bench.py",
        "my_bench/__init__.py", "my_bench/plugin.py", "my_bench/benchmark.py",
        "my_bench/baselines.py", "my_bench/task_configs/my_bench.yaml",
        "my_bench/prompts/my_bench/answer.candidate.j2",
        "my_bench/prompts/my_bench/variables.yaml", "my_bench/sample/choices.jsonl",
    }  # fmt: skip
    assert capsys.readouterr().out.splitlines() == [
        f"{folder}: 12 files. Next:",
        f"  pip install -e '{folder}[test]'",
        "  harness --model baseline --tasks my_bench --data sample",
        f"  python -m pytest {folder}",
    ]


@pytest.mark.parametrize(
    ("name", "hint"), [("a--b", "'a-b' is valid"), ("../up", "'up' is valid"), ("", None)]
)
def test_a_name_that_cannot_be_one_is_refused_with_one_that_can(name, hint):
    with pytest.raises(UsageError) as failure:
        package_name(name)
    assert failure.value.hint == hint


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("interests", "a benchmark of plugin 'interests'"),
        ("interests-short", "a task, "),
        ("harness-models", "a package, "),
        ("models", "a plugin of user-understanding-harness"),
        ("user-understanding-harness", "the distribution user-understanding-harness "),
    ],
)
def test_a_name_that_something_installed_has_is_refused(name, found, tmp_path, printed):
    said = printed("new-plugin", name, "--into", str(tmp_path), code=2).err
    assert "is taken" in said
    assert found in said
    assert not list(tmp_path.iterdir())


def test_a_place_is_not_half_filled(tmp_path, printed, monkeypatch):
    write, left = Path.write_text, iter(range(3))

    def full(file, *told, **named):
        if next(left, None) is None:
            raise OSError(28, "No space left on device")
        return write(file, *told, **named)

    monkeypatch.setattr(Path, "write_text", full)
    said = printed("new-plugin", "my-bench", "--into", str(tmp_path), code=1).err
    assert "No space left on device" in said
    assert not list(tmp_path.iterdir())


def test_words_of_templates_in_a_name_stay_what_they_are():
    files = files_of("gitignore-bench", "gitignore_bench", SIMPLE)
    assert {path.partition("/")[0] for path in files if "/" in path} == {"gitignore_bench", "tests"}
    assert ".gitignore" in files

"""What is told where a new plugin cannot be written, word for word."""

from harness.cli.main import main


def test_a_folder_that_cannot_be_made(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").write_text("a file, and no folder")
    assert main(["new-plugin", "my-bench", "--into", "notes"]) == 1
    assert (
        capsys.readouterr().err
        == """\
harness: notes/my-bench: the plugin could not be written
  found:    NotADirectoryError: [Errno 20] Not a directory: 'notes/my-bench'
  expected: a folder that can be written to: --into DIR
"""
    )

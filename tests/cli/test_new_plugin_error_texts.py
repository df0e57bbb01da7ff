"""What is told where a new plugin cannot be written, word for word."""

from inline_snapshot import snapshot

from harness.base.errors import StorageError


def test_a_folder_that_cannot_be_made(tmp_path, monkeypatch, exits):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").write_text("a file, and no folder")
    found = "NotADirectoryError: [Errno 20] Not a directory: 'notes/my-bench'"
    command = "new-plugin my-bench --into notes"
    assert exits(1, StorageError, command, where="notes/my-bench", found=found) == snapshot("""\
the plugin could not be written
expected: --into DIR with a writable folder\
""")

from pathlib import Path

import pytest

from harness.calls.store import file_system_type, is_network_type

TABLE = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 22 0:35 / /home rw,relatime shared:1 - nfs4 server:/home rw
41 40 254:1 / /home/local rw - xfs /dev/vdb rw
42 22 0:40 / /mnt/my\\040disk rw - fuse.sshfs me@host: rw
43 22 0:41 / /over rw - ext4 /dev/vdc rw
44 22 0:42 / /over rw - lustre x rw
45 22 0:43 / /homely rw - cifs //x/y rw
malformed line
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/etc/hosts", "ext4"),
        ("/home/me/.cache/calls.sqlite", "nfs4"),
        ("/home/local/x", "xfs"),
        ("/mnt/my disk/x", "fuse.sshfs"),
        ("/over/x", "lustre"),
        ("/home", "nfs4"),
    ],
)
def test_the_innermost_mount_decides(path, expected):
    assert file_system_type(Path(path), TABLE) == expected


def test_an_empty_table_tells_nothing():
    assert file_system_type(Path("/x"), "") is None


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("ext4", False), ("overlay", False), ("nfs", True), ("fuse.sshfs", True), ("fuseblk", False)],
)
def test_network_types(kind, expected):
    assert is_network_type(kind) is expected

"""The network file system that a path lies on, read from the mount table."""

from __future__ import annotations

from pathlib import Path

MOUNT_TABLE = Path("/proc/self/mountinfo")
# fmt: off
NETWORK_TYPES = frozenset((
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "glusterfs", "gpfs", "lustre",
    "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "pvfs2", "smb3", "smbfs", "vboxsf", "virtiofs",
    "wekafs",
))
# fmt: on
LOCAL_FUSE = frozenset(("fuse.ntfs-3g", "fuse.exfat", "fuse.fuse-overlayfs", "fuseblk"))


def network_type(path: Path) -> str | None:
    """The type of the path's network file system, which several machines may share.

    None for a local one, and without a mount table (on systems other than Linux).
    """
    try:
        table = MOUNT_TABLE.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    kind = file_system_type(path.resolve(), table)
    return kind if is_network_type(kind) else None


def is_network_type(kind: str | None) -> bool:
    """Whether shared memory between machines does not work on such a file system.

    FUSE file systems count as network file systems unless they are known to be local.
    """
    if kind is None:
        return False
    return kind in NETWORK_TYPES or (kind.startswith("fuse") and kind not in LOCAL_FUSE)


def file_system_type(path: Path, table: str) -> str | None:
    """The type of the innermost mount that contains the path; the later one on the same point."""
    best: tuple[int, str] | None = None
    for line in table.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")[0]
        if len(fields) < 5 or not kind:
            continue
        point = Path(_unescaped(fields[4]))
        depth = len(point.parts)
        if (point == path or point in path.parents) and (best is None or depth >= best[0]):
            best = (depth, kind)
    return best[1] if best else None


def _unescaped(text: str) -> str:
    for code, char in ((r"\040", " "), (r"\011", "\t"), (r"\012", "\n"), (r"\134", "\\")):
        text = text.replace(code, char)
    return text

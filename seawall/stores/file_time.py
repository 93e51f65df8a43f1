"""Whose clock stamps the files of a folder."""

import os
from pathlib import Path

_SERVER_STAMPS = {"nfs", "nfs4", "cifs", "smb3", "smb2"}
"""File systems whose server sets the time of a new file (RFC 1813 sattrguard3, RFC 8881 section 5.8.2.43, MS-FSA 2.1.5.1).

Lustre and CephFS clients send their own clock along, and a local disk has no clock but this host's.
"""


def stamped_by_server(root: Path) -> bool:
    """Whether moments of this folder come from another machine's clock."""
    return file_system_of(root) in _SERVER_STAMPS


def file_system_of(path: Path) -> str:
    """Type of the file system that holds ``path`` as /proc/self/mountinfo names it (proc_pid_mountinfo(5)); empty if unknown."""
    try:
        device = os.stat(path).st_dev
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in lines:
        fields = line.split(" ")
        if fields[2] == wanted and "-" in fields[6:]:
            return fields[fields.index("-", 6) + 1]
    return ""

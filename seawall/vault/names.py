"""Names in the sealed documents: what a restore may create, and that no two of them are the same place.

Text stands for POSIX bytes by UTF-8 with surrogateescape (PEP 383) whatever the locale, so a copy that was sealed on one host is
restored on any other.
"""

import re
from collections.abc import Mapping, Sequence

from seawall.errors import CorruptError

MAX_PART_BYTES = 255
"""NAME_MAX of Linux."""
MAX_NAME_BYTES = 4096
"""PATH_MAX of Linux."""

_MAX_LINKS = 200
"""Above the 40 that Linux follows, each counted up to a few times here."""

# mtime in nanoseconds (before 1970 it is negative), inode, device.
_IDENTITY = re.compile(r"(0|-?[1-9][0-9]{0,18}):[0-9]{1,20}:[0-9]{1,20}", re.ASCII)


def posix_bytes(name: str) -> bytes:
    """The bytes that a name in a document stands for."""
    return name.encode("utf-8", "surrogateescape")


def checked_name(name: str, where: str) -> str:
    """A file's name from a sealed document: relative and inside, because a restore writes there."""
    parts = posix_bytes(name).split(b"/")
    if b"\0" in posix_bytes(name) or any(part in (b"", b".", b"..") for part in parts):
        raise CorruptError("a file name would leave the checkpoint", where=where, why=repr(name)[:200])
    if len(posix_bytes(name)) > MAX_NAME_BYTES or max(len(part) for part in parts) > MAX_PART_BYTES:
        raise CorruptError("a file name is longer than any file system takes", where=where, why=repr(name)[:200])
    _check_one_spelling(name, where)
    return name


def checked_target(target: str, where: str) -> str:
    """A link's target: text without NUL. Whether it stays inside is judged where the link is made."""
    if not target or "\0" in target:
        raise CorruptError("a link has no target", where=where, why=repr(target)[:200])
    _check_one_spelling(target, where)
    return target


def _check_one_spelling(text: str, where: str) -> None:
    # Escapes that together are valid UTF-8 would be a second spelling of the same bytes, and so a second entry of the same name.
    if posix_bytes(text).decode("utf-8", "surrogateescape") != text:
        raise CorruptError("a name escapes bytes that are valid UTF-8", where=where, why=repr(text)[:200])


def identity_of(mtime_ns: int, inode: int, device: int) -> str:
    """``mtime_ns:inode:device`` of a source file. A time that 64 bits do not hold (after 2262, from a clock that jumped) is the
    last one that they do, because a sealing with another one could never be read again."""
    return f"{max(-(2**63), min(mtime_ns, 2**63 - 1))}:{inode}:{device}"


def checked_identity(identity: str, where: str) -> str:
    """``mtime_ns:inode:device`` of a source file."""
    match = _IDENTITY.fullmatch(identity)
    if match is None or not -(2**63) <= int(match[1]) < 2**63:
        raise CorruptError("a file's identity is malformed", where=where, why=repr(identity)[:80])
    return identity


def stays_inside(name: str, links: Mapping[str, str]) -> bool:
    """Whether following link ``name`` (of these, name → target) never leaves the checkpoint, also through other links."""
    at = name.split("/")[:-1]
    todo = [links[name]]
    for _ in range(_MAX_LINKS):
        target = todo.pop()
        if target.startswith("/"):
            return False
        for depth, part in enumerate(parts := target.split("/")):
            if part == "..":
                if not at:
                    return False
                at.pop()
            elif part not in ("", "."):
                at.append(part)
                if (met := "/".join(at)) in links:
                    at.pop()
                    todo += ["/".join(parts[depth + 1 :]), links[met]]
                    break
        if not todo:
            return True
    # As the kernel does: what goes on for longer goes in a circle, and leads nowhere.
    return True


def check_tree(files: Sequence[str], folders: Sequence[str], links: Sequence[str], pointer: str | None, where: str) -> None:
    """Raises :class:`CorruptError` when two entries have one name, or one lies below a file or link.

    Otherwise one file could replace another, or be written through a link to outside the checkpoint.
    """
    leaves = set(files) | set(links)
    if len(leaves) != len(files) + len(links) or len(set(folders)) != len(folders) or pointer in links:
        raise CorruptError("two entries of the checkpoint have one name", where=where)
    if pointer is not None:
        # It may be one of the files: it is written last, in its place.
        leaves.add(pointer)
    for name in leaves | set(folders):
        at = name.find("/")
        while at >= 0:
            if name[:at] in leaves:
                raise CorruptError("an entry of the checkpoint lies below a file or link", where=where, why=repr(name)[:200])
            at = name.find("/", at + 1)
    if not leaves.isdisjoint(folders):
        raise CorruptError("two entries of the checkpoint have one name", where=where)

"""What an ``OSError`` of a file store means to a caller."""

import errno

from seawall.errors import NoSuchObjectError, StoreError, StoreRefusedError, StoreUnavailableError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_COME_BACK = {
    errno.ESTALE,
    errno.ETIMEDOUT,
    errno.EHOSTDOWN,
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
    errno.EAGAIN,
    errno.EBUSY,
    errno.EINTR,
    errno.ENOTCONN,
    errno.EREMOTEIO,
}
_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}


def store_error(error: OSError, what: str, where: str) -> StoreError:
    """The typed error for one failed system call, with what to do about it."""
    code = error.errno or 0
    why = error.strerror or str(error)
    if code == errno.ENOENT:
        return NoSuchObjectError("no such object", where=where)
    if code in _FULL:
        limit = "the file system has no room left" if code == errno.ENOSPC else "a quota or file size limit is reached"
        return StoreRefusedError(
            what, where=where, why=f"{limit} ({why})", do="make room or raise the limit, then run it again; nothing was left behind"
        )
    if code in _NOT_ALLOWED:
        return StoreRefusedError(what, where=where, why=why, do="check the owner and mode of the store's folder and how it is mounted")
    if code in (errno.ELOOP, errno.ENOTDIR):
        return StoreRefusedError(
            what,
            where=where,
            why="a part of this key is a symbolic link or a plain file, not a folder",
            do="look at this path by hand; a store holds only folders and plain files",
        )
    if code in (errno.EISDIR, errno.ENOTEMPTY):
        return StoreRefusedError(
            what, where=where, why="a folder has this name", do="use another key; a file store cannot hold both a and a/b"
        )
    if code == errno.ENAMETOOLONG:
        return StoreRefusedError(what, where=where, why="a part of the key is longer than this file system allows", do="use a shorter name")
    if code == errno.EXDEV:
        return StoreRefusedError(
            what, where=where, why="another file system is mounted inside the store's folder", do="give that file system a store of its own"
        )
    if code in _COME_BACK:
        return StoreUnavailableError(what, where=where, why=why, do="check the mount and the server behind it")
    return StoreRefusedError(what, where=where, why=why, do="look at the kernel log for this disk or mount")

"""One vector: a good copy in which one thing is wrong, and what every reader must say to it."""

from dataclasses import dataclass, field

from tests.vectors.copies import SealedCopy

READERS = ("alone", "stream", "range", "scrub", "check")
"""The object by itself; all files from first to last; all files by ranges; every stored byte without a key; all of it."""

OUTCOMES = ("ok", "corrupt", "unsupported", "trust", "key")


@dataclass
class Vector:
    """``readers`` names those that see something else than ``expect``, as the table in format-1.md section 12 allows."""

    name: str
    base: SealedCopy
    done: str
    expect: str
    object: str = ""
    """The sealed object that is wrong, where it is one."""
    objects: dict[str, bytes | None] = field(default_factory=dict)
    """What lies under these names instead; None where nothing does."""
    manifest: str = ""
    """Digest of the manifest that the log names; that of the base without it."""
    readable: tuple[int, ...] | None = None
    """Records of ``object`` that may still be read."""
    readers: dict[str, str] = field(default_factory=dict)
    keyring: str = "usual"
    """Or ``stranger``, whose key is no recipient."""

    def outcome(self, reader: str) -> str:
        """What it must say; empty where there is nothing for it to read."""
        if reader == "alone" and not self.objects.get(self.object):
            return ""
        return self.readers.get(reader, self.expect)


def instead(base: SealedCopy, name: str, done: str, other: SealedCopy, expect: str, object: str = "", **more: object) -> Vector:
    """A vector of everything that ``other`` has other than ``base``, its manifest being the one that the log names."""
    names = base.objects.keys() | other.objects.keys()
    changed = {key: other.objects.get(key) for key in sorted(names) if base.objects.get(key) != other.objects.get(key)}
    return Vector(name, base, done, expect, object, changed, other.manifest_digest, **more)  # type: ignore[arg-type]  # fields of Vector

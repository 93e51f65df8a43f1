"""Rewrap: give a sealing's data key to recipients that came later, in every store that has a copy.

A new version of the wrapped keys is added; none is changed or removed, and every recipient of the newest version stays in
the next one. So a rotation locks nobody out, and it is no revocation either: whoever had a key before can still read.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from seawall.errors import (
    CorruptError,
    KeyMissingError,
    NoSuchCopyError,
    NoSuchObjectError,
    ObjectExistsError,
    SeawallError,
    StoreAmbiguousError,
    StoreError,
    TrustError,
)
from seawall.log.state import CommitRecord, RunState
from seawall.protect.place import Place
from seawall.vault.open import Resolve
from seawall.vault.recipients import Recipient, Unwrapper
from seawall.vault.sealing import Sealing, read_sealing, unlock
from seawall.vault.signing import PublicKey, SigningKey
from seawall.vault.wraps import MAX_BYTES, WrappedKey, keys_name, parse_wraps, wrap_for

MAX_WRAPS = 64
"""Recipients that one version may name (docs/spec/format-1.md, section 7). Older versions stay, and are tried too."""
_VERSION = re.compile(r"keys-([1-9][0-9]{0,8})\.json\Z", re.ASCII)
_MAX_TRIES = 4
"""Versions that may be lost to another rewrap of the same sealing at the same time."""


@dataclass
class Rewrapped:
    """What became of one sealing."""

    commit: CommitRecord
    added: dict[str, int] = field(default_factory=dict)
    """Place → version that was added there, or would be."""
    current: list[str] = field(default_factory=list)
    """Places whose newest version had all recipients already."""
    absent: list[str] = field(default_factory=list)
    """Places that have no copy of it."""
    failed: dict[str, SeawallError] = field(default_factory=dict)
    """Places that could not be reached, or whose copy is damaged; the next rewrap tries them again."""


@dataclass(frozen=True)
class Wraps:
    """The wrapped keys of one copy that count, and what lies beside them."""

    newest: WrappedKey
    highest: int
    """Number of the newest object, which may be one that does not count: its number is taken all the same."""
    passed_over: dict[int, str]
    """Later versions that are damaged, or signed by a key that is no operator's or is revoked by now; with the reason."""


def read_newest_wraps(sealing: Sealing, operators: Resolve) -> Wraps:
    """The newest wraps that a writer or an operator vouches for. :class:`NoSuchObjectError` when there are none.

    A version that does not count is passed over, because a planted or damaged one must not end rotation for good.
    """
    either = _either(sealing, operators)
    names = (found.key.removeprefix(sealing.folder) for found in sealing.store.list(sealing.folder + "keys-"))
    numbers = sorted((int(match[1]) for match in map(_VERSION.match, names) if match), reverse=True)
    passed_over: dict[int, str] = {}
    for number in numbers:
        key = sealing.folder + keys_name(number)
        raw = sealing.store.get(key, 0, MAX_BYTES + 1)
        manifest = sealing.manifest
        try:
            return Wraps(parse_wraps(raw, manifest.run, manifest.sealing, number, either, key), numbers[0], passed_over)
        except (CorruptError, TrustError) as error:
            passed_over[number] = str(error)
    raise NoSuchObjectError(
        "the copy has no wrapped keys that count",
        where=f"{sealing.store.url}/{sealing.folder}",
        why="; ".join(passed_over.values()),
        do="`seawall verify` says whether the rest of the copy is whole",
    )


def _either(sealing: Sealing, operators: Resolve) -> Resolve:
    def either(key_id: str) -> PublicKey | None:
        return sealing.writers(key_id) or operators(key_id)

    return either


@dataclass(frozen=True)
class _Copy:
    place: Place
    sealing: Sealing
    wraps: Wraps

    @property
    def newest(self) -> WrappedKey:
        return self.wraps.newest


def rewrap(
    state: RunState,
    commit: CommitRecord,
    places: Sequence[Place],
    recipients: Sequence[Recipient],
    unwrappers: Sequence[Unwrapper],
    operator: SigningKey | None,
) -> Rewrapped:
    """Bring the newest wraps of one sealing up to ``recipients`` in every place that has a copy. Safe to run again after a kill.

    All places get the same bytes. Without ``operator`` nothing is written and ``added`` says what would be. Raises
    :class:`KeyMissingError` when no key of this host opens the sealing, or ``operator`` is not listed or revoked.
    """
    done = Rewrapped(commit)
    resolve = state.resolver("operator")
    if operator is not None and resolve(operator.key_id) is None:
        raise KeyMissingError(
            "this operator key does not count",
            where=operator.key_id,
            why="the trust list in force does not list it, or revokes it",
            do="use another operator's key (`seawall keys trust show`)",
        )
    copies = [copy for place in places if (copy := _look(state, commit, place, resolve, done)) is not None]
    behind = [copy for copy in copies if not _has_all(copy.newest, recipients)]
    done.current += [copy.place.name for copy in copies if copy not in behind]
    if not behind:
        return done
    document, number = _ready(copies, behind, recipients, resolve)
    for attempt in range(_MAX_TRIES):
        if document is None:
            number = max(copy.wraps.highest for copy in copies) + 1 + attempt
            wrapped = _next_version(behind[0], number, recipients, unwrappers, resolve)
            document = wrapped.sign(operator) if operator is not None else b""
        if operator is None:
            done.added = {copy.place.name: number for copy in behind}
            return done
        if _put_everywhere(document, number, behind, done):
            return done
        document = None
    raise StoreAmbiguousError(
        "others rewrap the same sealing", where=f"{state.run} {commit.sealing}", do="run it again when they are done; nothing was lost"
    )


def _look(state: RunState, commit: CommitRecord, place: Place, resolve: Resolve, done: Rewrapped) -> _Copy | None:
    if state.is_deleted(commit.sealing, place.id):
        done.absent.append(place.name)
        return None
    try:
        sealing = read_sealing(place.store, state.run, bytes.fromhex(commit.sealing), commit.manifest, state.writer_of(commit))
        return _Copy(place, sealing, read_newest_wraps(sealing, resolve))
    except NoSuchCopyError:
        done.absent.append(place.name)
        return None
    except (StoreError, CorruptError, TrustError) as error:
        # One damaged copy must not keep the others from being rewrapped.
        done.failed[place.name] = error
        return None


def _has_all(wrapped: WrappedKey, recipients: Sequence[Recipient]) -> bool:
    there = {(wrap.kind, wrap.recipient) for wrap in wrapped.wraps}
    return all((recipient.kind, recipient.id) in there for recipient in recipients)


def _ready(copies: Sequence[_Copy], behind: Sequence[_Copy], recipients: Sequence[Recipient], resolve: Resolve) -> tuple[bytes | None, int]:
    """The version that an earlier, interrupted rewrap left in one place, if it fits in all the others."""
    highest = max(copy.wraps.highest for copy in behind)
    for copy in copies:
        newest = copy.newest
        if newest.version > highest and _has_all(newest, recipients):
            key = copy.sealing.folder + keys_name(newest.version)
            raw = copy.sealing.store.get(key)
            parse_wraps(raw, newest.run, newest.sealing, newest.version, _either(copy.sealing, resolve), key)
            return raw, newest.version
    return None, 0


def _next_version(
    copy: _Copy, number: int, recipients: Sequence[Recipient], unwrappers: Sequence[Unwrapper], resolve: Resolve
) -> WrappedKey:
    data_key = unlock(copy.sealing, unwrappers, resolve)
    newest = copy.newest
    there = {(wrap.kind, wrap.recipient) for wrap in newest.wraps}
    missing = [recipient for recipient in recipients if (recipient.kind, recipient.id) not in there]
    fresh = wrap_for(missing, data_key, newest.run, newest.sealing, number)
    # The newest recipients come last, so what does not fit any more is the oldest; it stays where it is, in an older version.
    wraps = (*newest.wraps, *fresh.wraps)[-MAX_WRAPS:]
    return WrappedKey(newest.run, newest.sealing, number, newest.commitment, wraps)


def _put_everywhere(document: bytes, number: int, behind: Sequence[_Copy], done: Rewrapped) -> bool:
    """False when another rewrap took the number in some place."""
    for copy in behind:
        name = copy.place.name
        if done.added.get(name) == number:
            continue
        key = copy.sealing.folder + keys_name(number)
        try:
            copy.place.store.put(key, document)
        except (ObjectExistsError, StoreAmbiguousError) as error:
            try:
                there = copy.place.store.get(key)
            except NoSuchObjectError:
                done.failed[name] = error
                continue
            if there != document:
                return False
        except StoreError as error:
            done.failed[name] = error
            continue
        done.added[name] = number
        done.failed.pop(name, None)
    return True

"""Who takes part in the tests of the log: keys of every role, a clock that never waits, and a hand that writes entries as told."""

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from seawall.clock import utc_text
from seawall.log.bodies import Body, Commit, Epoch, Genesis, Hold, Quarantine
from seawall.log.entries import NO_ENTRY, PAYLOAD_TYPE, Entry, entry_key, operation_id
from seawall.log.identity import IDENTITY_KEY, identify
from seawall.log.read import LogView, read_log
from seawall.testing.memory import MemoryStore
from seawall.vault import canonical, dsse
from seawall.vault.signing import ROLES, SigningKey
from seawall.vault.trust import first_list, sign_list

RUN = "gpt"


class TickClock:
    """Every look at it is a second later; waiting takes no time and is counted."""

    def __init__(self) -> None:
        self.ticks = 0
        self.slept = 0.0

    def now(self) -> datetime:
        self.ticks += 1
        return datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=self.ticks)

    def monotonic(self) -> float:
        return self.ticks + self.slept

    def sleep(self, seconds: float) -> None:
        self.slept += seconds


def key_from_seed(role: str, name: str = "") -> SigningKey:
    """The same key in every run, so that a failure can be looked at again."""
    return SigningKey(hashlib.sha256(f"{role} {name}".encode()).digest(), role)


@dataclass
class Keys:
    """One key of every role, and two strangers."""

    root: SigningKey = field(default_factory=lambda: key_from_seed("root"))
    writer: SigningKey = field(default_factory=lambda: key_from_seed("writer"))
    second_writer: SigningKey = field(default_factory=lambda: key_from_seed("writer", "second"))
    verifier: SigningKey = field(default_factory=lambda: key_from_seed("verifier"))
    second_verifier: SigningKey = field(default_factory=lambda: key_from_seed("verifier", "second"))
    operator: SigningKey = field(default_factory=lambda: key_from_seed("operator"))
    coordinator: SigningKey = field(default_factory=lambda: key_from_seed("coordinator"))
    stranger: SigningKey = field(default_factory=lambda: key_from_seed("writer", "stranger"))
    other_root: SigningKey = field(default_factory=lambda: key_from_seed("root", "other"))

    @property
    def listed(self) -> list[SigningKey]:
        return [self.writer, self.second_writer, self.verifier, self.second_verifier, self.operator, self.coordinator]

    def of(self, role: str) -> SigningKey:
        assert role in ROLES
        found = getattr(self, role)
        assert isinstance(found, SigningKey)
        return found


KEYS = Keys()


def trust_list() -> bytes:
    return sign_list(first_list(KEYS.listed, TickClock()), KEYS.root)


def hexed(text: str, nbytes: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[: 2 * nbytes]


def commit_body(step: int, written: int = 1, name: str = "", quarantine: str = "") -> Commit:
    return Commit(
        sealing=hexed(f"sealing {step} {name}", 16),
        step=step,
        written=written,
        manifest=hexed(f"manifest {step} {name}", 32),
        keys=hexed("keys", 32),
        store=hexed("store", 16),
        receipt=hexed("receipt", 32),
        stored_at="2026-03-01T00:00:00.000000Z",
        quarantine=quarantine,
    )


@dataclass
class Hand:
    """Writes entries into a store by itself, well-formed unless told otherwise, whatever the rules say about them."""

    store: MemoryStore
    seq: int = 0
    prev: str = NO_ENTRY
    epoch: int = 0

    def entry(self, body: Body, **changes: object) -> Entry:
        at = utc_text(datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=self.seq))
        epoch = body.number if isinstance(body, Epoch) else self.epoch
        fields: dict[str, object] = {"run": RUN, "seq": self.seq + 1, "prev": self.prev, "epoch": epoch, "at": at, "body": body}
        fields["op"] = operation_id("test", str(self.seq + 1))
        return Entry(**{**fields, **changes})  # type: ignore[arg-type]  # a test may say anything

    def write(self, body: Body, key: SigningKey, **changes: object) -> bytes:
        """Sign and store the next entry; ``changes`` replaces fields of it."""
        return self.put(self.entry(body, **changes).encode(), key, body)

    def put(self, payload: bytes, key: SigningKey, body: Body | None = None, payload_type: str = PAYLOAD_TYPE) -> bytes:
        """Store a payload as the next entry."""
        return self.put_stored(dsse.sign(payload_type, payload, [key]).encode(), body)

    def put_stored(self, stored: bytes, body: Body | None = None) -> bytes:
        self.seq += 1
        self.store.objects[entry_key(RUN, self.seq)] = stored
        self.prev = dsse.digest(stored)
        if isinstance(body, Epoch):
            self.epoch = body.number
        return stored


def begun(name: str = "c") -> tuple[MemoryStore, Hand]:
    """A store with genesis and epoch 1, and the hand that wrote them."""
    store = MemoryStore(name)
    store.objects[IDENTITY_KEY] = canonical.encode({"format": "1", "store": hexed(f"store {name}", 16)})
    hand = Hand(store)
    hand.write(Genesis(identify(store), trust_list()), KEYS.coordinator)
    hand.write(Epoch(1, (KEYS.writer.key_id,), "begun"), KEYS.coordinator)
    return store, hand


def longer(entries: int, name: str = "c") -> tuple[MemoryStore, Hand]:
    """A valid log of ``entries`` entries with some of everything in it."""
    store, hand = begun(name)
    while hand.seq < entries:
        step = hand.seq
        if step % 5 == 3:
            hand.write(Quarantine(commit_body(step - 1, hand.epoch).sealing, "looks odd"), KEYS.verifier)
        elif step % 7 == 5:
            hand.write(Hold(f"reason {step}"), KEYS.operator)
        else:
            hand.write(commit_body(step, hand.epoch), KEYS.writer)
    return store, hand


def read(store: MemoryStore, start: LogView | None = None, **options: bool) -> LogView:
    return read_log(store, RUN, KEYS.root.public, start, **options)

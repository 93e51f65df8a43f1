"""What proofs carry beside ok and failed: counts of tensors and numbers, who opens the sealing, locks, versions, and the cost."""

import json
import struct
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy
import pytest

from seawall.clock import utc_text
from seawall.errors import NoSuchObjectError
from seawall.log.state import CommitRecord
from seawall.protect.checkpoint_source import read_source
from seawall.stores.base import Capabilities, Stored
from seawall.testing.memory import MemoryStore
from seawall.verify.certify import proofs_of
from seawall.verify.check import FAILED, Finding
from seawall.verify.committed import check_committed
from seawall.verify.levels import Level
from tests.protect.little_site import LittleSite

MASK = numpy.full((2, 2), -numpy.inf, "<f4")


def safetensors(folder: Path, tensors: dict[str, numpy.ndarray]) -> Path:
    """A folder with one file in the format of the safetensors specification."""
    names = {"<f4": "F32", "<f2": "F16", "<i8": "I64"}
    header, body = {}, b""
    for name, values in tensors.items():
        raw = values.tobytes()
        header[name] = {"dtype": names[values.dtype.str], "shape": list(values.shape), "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    packed = json.dumps(header).encode()
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(packed)) + packed + body)
    return folder


def weights(number: int) -> numpy.ndarray:
    return numpy.full((10, 10), number, "<f4")


@pytest.fixture
def site() -> LittleSite:
    site = LittleSite({"a": MemoryStore("a"), "c": MemoryStore("c")})
    site.open()
    return site


def committed(site: LittleSite, source: Path, step: int) -> CommitRecord:
    done = site.sync(read_source(str(source), step=step), places=("a",))
    return site.view().state.commit_of(done.sealing)


def checked(site: LittleSite, commit: CommitRecord, level: Level = Level.L4) -> dict[Level, Finding]:
    found = check_committed(site.stores["a"], site.view(), commit, level, lambda: site.keyring.keys, transfers=2, clock=site.clock)
    return {finding.level: finding for finding in found}


def test_l4_counts_names_beside_the_checkpoint_before(site: LittleSite, tmp_path: Path) -> None:
    first = committed(site, safetensors(tmp_path / "first", {f"layer.{n}": weights(1) for n in range(4)}), 100)
    evidence = checked(site, first)[Level.L4].evidence
    assert evidence["keys"] == "4" and "keys_missing" not in evidence
    second = committed(site, safetensors(tmp_path / "second", {f"layer.{n}": weights(1) for n in range(1, 6)}), 200)
    evidence = checked(site, second)[Level.L4].evidence
    assert (evidence["keys"], evidence["keys_missing"], evidence["keys_new"]) == ("5", "1", "2")
    assert evidence["compared_with"] == first.sealing
    assert not any("layer" in value for value in evidence.values()), "evidence is public, names are not"


def test_a_checkpoint_before_that_does_not_open_leaves_the_comparison_out(site: LittleSite, tmp_path: Path) -> None:
    first = committed(site, safetensors(tmp_path / "first", {"w": weights(1)}), 100)
    second = committed(site, safetensors(tmp_path / "second", {"w": weights(2)}), 200)
    store = site.stores["a"]
    assert isinstance(store, MemoryStore)
    for key in [key for key in store.objects if first.sealing in key and key.endswith("inventory.sea")]:
        del store.objects[key]
    finding = checked(site, second)[Level.L4]
    assert finding.result == "ok" and finding.evidence["keys"] == "1" and "compared_with" not in finding.evidence


def test_l4_counts_numbers_of_every_kind(site: LittleSite, tmp_path: Path) -> None:
    odd = numpy.array([0, -0.0, numpy.nan, numpy.inf, -numpy.inf, 1, 2, 3], "<f4")
    half = numpy.array([65504, -65504, 65000, 0], "<f2")
    steps = numpy.array([0, 7], "<i8")
    commit = committed(site, safetensors(tmp_path / "first", {"odd": odd, "half": half, "mask": MASK, "steps": steps}), 100)
    evidence = checked(site, commit)[Level.L4].evidence
    assert {name: evidence[name] for name in ("floats", "nonfinite", "zeros", "saturated")} == {
        "floats": "16",
        "nonfinite": "3",
        "zeros": "3",
        "saturated": "2",
    }


def test_l2_says_who_can_open_it_and_every_level_what_it_cost(site: LittleSite, tmp_path: Path) -> None:
    commit = committed(site, safetensors(tmp_path / "first", {"w": weights(1)}), 100)
    found = checked(site, commit)
    wraps = found[Level.L2].evidence["wraps"].split(", ")
    assert [wrap.split()[0] for wrap in wraps] == ["keyring", site.recovery.public.kind]
    stored = int(found[Level.L2].evidence["stored_bytes"])
    assert stored <= int(found[Level.L2].evidence["read_bytes"]) <= stored + 200_000
    assert all(
        int(found[level].evidence["requests"]) > 0 and float(found[level].evidence["seconds"]) >= 0 for level in (Level.L0, Level.L3)
    )
    assert found[Level.L0].evidence["whole_at"] == commit.stored_at


class VersionedStore(MemoryStore):
    """Keeps what was overwritten, and locks what it is told to."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.past: dict[tuple[str, str], bytes] = {}
        self.locked_until: dict[str, datetime] = {}

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, versions=True, object_lock=True)

    def _set(self, key: str, whole: bytes) -> Stored:
        stored = super()._set(key, whole)
        self.past[key, stored.version or ""] = whole
        return stored

    def head(self, key: str, version: str | None = None) -> Stored:
        return replace(super().head(key, version), locked_until=self.locked_until.get(key))

    def get(self, key: str, start: int = 0, length: int | None = None, version: str | None = None) -> bytes:
        if version is None:
            return super().get(key, start, length)
        if (key, version) not in self.past:
            raise NoSuchObjectError("there is no such version", where=key)
        data = self.past[key, version]
        return data[start:] if length is None else data[start : start + length]

    def read_into(self, key: str, start: int, buffer: memoryview, version: str | None = None) -> int:
        found = self.get(key, start, len(buffer), version)
        buffer[: len(found)] = found
        return len(found)

    def overwrite(self, key: str, data: bytes) -> None:
        """As somebody with the store's own tools would."""
        self._set(key, data)


@pytest.fixture
def versioned(tmp_path: Path) -> tuple[LittleSite, VersionedStore, CommitRecord]:
    store = VersionedStore("a")
    site = LittleSite({"a": store, "c": MemoryStore("c")})
    site.open()
    return site, store, committed(site, safetensors(tmp_path / "first", {"w": weights(1)}), 100)


def test_a_proof_names_the_versions_that_it_read(versioned: tuple[LittleSite, VersionedStore, CommitRecord]) -> None:
    site, _, commit = versioned
    findings = list(checked(site, commit).values())
    proofs = proofs_of(findings, commit, site.place("a").id, site.clock)
    assert {len(proof.versions) for proof in proofs} == {64}
    assert {proof.result for proof in proofs} == {"ok"}


def test_an_object_that_was_overwritten_fails_although_its_version_is_still_there(
    versioned: tuple[LittleSite, VersionedStore, CommitRecord],
) -> None:
    """A restore reads what is current."""
    site, store, commit = versioned
    (key,) = [key for key in store.objects if commit.sealing in key and key.endswith("file-0.sea")]
    store.overwrite(key, store.objects[key])
    found = checked(site, commit, Level.L2)
    assert found[Level.L1].result == FAILED and found[Level.L1].damages[0].object == "file-0.sea"
    assert found[Level.L2].result == "ok", "the version that the receipt names was read"
    store.overwrite(key, b"somebody else's")
    assert checked(site, commit, Level.L1)[Level.L1].result == FAILED


def test_locks_are_looked_at_with_the_heads(versioned: tuple[LittleSite, VersionedStore, CommitRecord]) -> None:
    site, store, commit = versioned
    keys = [key for key in store.objects if commit.sealing in key and key.endswith(".sea")]
    evidence = checked(site, commit, Level.L2)[Level.L2].evidence
    assert evidence["unlocked"] == str(len(keys)) and "locked_until" not in evidence
    for day, key in enumerate(keys, 1):
        store.locked_until[key] = datetime(2027, 1, day, tzinfo=UTC)
    evidence = checked(site, commit, Level.L2)[Level.L2].evidence
    assert (evidence["unlocked"], evidence["locked_until"]) == ("0", utc_text(datetime(2027, 1, 1, tzinfo=UTC)))

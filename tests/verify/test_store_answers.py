"""What the store itself says: checksums that it has, has not, or has wrong; and stores that do not answer at all."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from seawall.errors import ConfigurationError, NoSuchObjectError, StoreError, StoreRefusedError, StoreUnavailableError
from seawall.kernels.crc64 import crc64
from seawall.stores.base import Capabilities, Store, Stored
from seawall.stores.wrapper import Wrapper
from seawall.testing.faulty import FaultyStore
from seawall.vault.header import HEADER_BYTES
from seawall.verify.check import NOT_ATTAINABLE
from seawall.verify.levels import Level
from tests.verify.sealed_copy import LARGE, SMALL, SealedCopy, failed, proved, sealed_files

L0, L1, L2, L3, L4 = Level.L0, Level.L1, Level.L2, Level.L3, Level.L4


class ChecksummingStore(Wrapper):
    """Reports CRC-64/NVME of what it holds, through ``reported``, which a test may make lie."""

    def __init__(self, inner: Store, reported: Callable[[str, int], int | None] = lambda key, crc: crc) -> None:
        super().__init__(inner)
        self._reported = reported

    @property
    def capabilities(self) -> Capabilities:
        return replace(self.inner.capabilities, full_object_crc=True)

    def head(self, key: str, version: str | None = None) -> Stored:
        stored = self.inner.head(key, version)
        return replace(stored, crc64=self._reported(key, crc64(self.inner.get(key))))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> SealedCopy:
    return sealed_files(tmp_path_factory.mktemp("whole") / "ck", SMALL | LARGE)


def test_a_store_that_sums_proves_l1(whole: SealedCopy) -> None:
    assert proved(whole.check(L2, ChecksummingStore(whole.store))) == {L0, L1, L2}


def test_a_wrong_checksum_fails_l1_by_name_and_no_content_is_certified(whole: SealedCopy) -> None:
    lying = ChecksummingStore(whole.store, lambda key, crc: crc ^ 1 if key.endswith("file-3.sea") else crc)
    findings = whole.check(L4, lying)
    assert failed(findings) == {L1} and proved(findings) == {L0, L2}
    assert [damage.object for damage in findings[L1].damages] == ["file-3.sea"]


def test_rot_under_a_summing_store_is_seen_by_the_cheap_look(whole: SealedCopy) -> None:
    copy = whole.fresh()
    key = copy.folder + "file-2.sea"
    rotten = bytearray(copy.store.objects[key])
    rotten[HEADER_BYTES + 1000] ^= 1
    copy.store.objects[key] = bytes(rotten)
    findings = copy.check(L2, ChecksummingStore(copy.store))
    assert proved(findings) == {L0} and failed(findings) == {L1, L2}
    assert [damage.object for damage in findings[L1].damages] == ["file-2.sea"]


def test_an_object_without_checksum_is_no_damage_and_no_proof(whole: SealedCopy) -> None:
    """A copy that another tool brought into the bucket has none."""
    silent = ChecksummingStore(whole.store, lambda key, crc: None if key.endswith("file-4.sea") else crc)
    findings = whole.check(L2, silent)
    assert proved(findings) == {L0, L2} and findings[L1].result == NOT_ATTAINABLE
    assert "file-4.sea" in findings[L1].evidence["why"]


@pytest.mark.parametrize("method", ["list", "get", "read_into"])
@pytest.mark.parametrize("error", [StoreUnavailableError("no answer"), StoreRefusedError("no right to read")])
def test_a_store_that_does_not_answer_is_no_finding(whole: SealedCopy, method: str, error: StoreError) -> None:
    store = FaultyStore(whole.store).fail(method, error, times=None)
    with pytest.raises(type(error)):
        whole.check(L2, store)


def test_a_store_that_stops_answering_while_checksums_are_asked_for_is_no_finding(whole: SealedCopy) -> None:
    class Silent(ChecksummingStore):
        def head(self, key: str, version: str | None = None) -> Stored:
            raise StoreUnavailableError("no answer")

    with pytest.raises(StoreUnavailableError):
        whole.check(L1, Silent(whole.store))


@pytest.mark.parametrize("name", ["file-2.sea", "file-3.sea", "plan.sea"])
def test_an_object_that_vanishes_during_the_check_is_a_finding(whole: SealedCopy, name: str) -> None:
    key = whole.folder + name
    store = FaultyStore(whole.store).fail("get", NoSuchObjectError("gone", where=key), times=None, key=key)
    findings = whole.check(L2, store)
    assert failed(findings) == {L2} and [damage.object for damage in findings[L2].damages] == [name]


def test_scratch_that_is_not_there_is_no_finding(whole: SealedCopy, tmp_path: Path) -> None:
    """A verifier's own disk says nothing about the copy."""
    from seawall.verify.check import check_copy
    from tests.protect.little_site import RUN

    commit, state = whole.commit, whole.state
    with pytest.raises(ConfigurationError, match="not-mounted"):
        check_copy(
            whole.store,
            RUN,
            bytes.fromhex(commit.sealing),
            commit.manifest,
            state.writer_of(commit),
            state.resolver("operator"),
            L4,
            unlock=whole.open_up,
            scratch=tmp_path / "not-mounted",
        )

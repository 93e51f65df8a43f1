"""What was sealed is opened, whole and in any part; what was changed anywhere is refused."""

import tracemalloc
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.errors import CorruptError, KeyMissingError, SeawallError, SourceChangedError, UsageError
from seawall.kernels.crc64 import crc64
from seawall.vault.codecs import Codec
from seawall.vault.header import MAX_CHUNK_BYTES
from seawall.vault.objects import row_of, row_of_frame
from seawall.vault.open import Opener, open_bytes, scrub
from seawall.vault.seal import MAX_PARTS, PART_BYTES, part_bytes_for
from seawall.vault.tail import MAX_NAME_BYTES, MAX_RECORDS
from tests.vault.sealed import CHUNK_BYTES, DATA_KEY, Source, frame_of, opener_of, range_of, resolve, sealed, sealer_of
from tests.vectors.copies import noise, text

SIZES = st.one_of(
    st.integers(0, 5 * CHUNK_BYTES),
    st.builds(lambda chunks, delta: max(0, chunks * CHUNK_BYTES + delta), st.integers(0, 12), st.integers(-2, 2)),
)
CODECS = st.sampled_from(list(Codec))
QUICK = settings(max_examples=60, deadline=None)


def plaintext_of(nbytes: int, shrinks: bool) -> bytes:
    return text(nbytes) if shrinks else noise("content", nbytes)


@QUICK
@given(SIZES, CODECS, st.booleans(), st.sampled_from([1, 1500, 4096, PART_BYTES]), st.sampled_from([1, 999, 1 << 30]))
def test_round_trip(nbytes: int, codec: Codec, shrinks: bool, part_bytes: int, most: int) -> None:
    plaintext = plaintext_of(nbytes, shrinks)
    raw, facts, lengths = sealed(plaintext, codec, part_bytes, max(most, nbytes // 50))
    opened, opener = open_bytes(raw, DATA_KEY, resolve, "object")
    assert opened == plaintext
    assert (opener.footer.name, opener.footer.length, opener.footer.digest) == (b"a file", nbytes, sha256(plaintext).digest())
    assert (facts.length, facts.crc64, facts.plaintext_digest) == (len(raw), crc64(raw), sha256(plaintext).digest())
    assert row_of_frame(opener.frame, facts.name) == row_of(facts)
    assert all(length >= part_bytes for length in lengths[:-1])
    assert scrub(opener.frame, lambda start, length: memoryview(raw)[start : start + length]) == []


@QUICK
@given(SIZES, CODECS, st.booleans(), st.integers(0, 7000), st.integers(0, 7000))
def test_any_range_is_the_slice(nbytes: int, codec: Codec, shrinks: bool, start: int, length: int) -> None:
    plaintext = plaintext_of(nbytes, shrinks)
    raw, _, _ = sealed(plaintext, codec)
    assert range_of(raw, start, length) == plaintext[start : start + length]


@pytest.mark.parametrize(("start", "length"), [(-1, 10), (0, -1), (-5, -5)])
def test_a_range_before_the_beginning_is_refused(start: int, length: int) -> None:
    raw, _, _ = sealed(bytes(5000))
    with pytest.raises(UsageError):
        range_of(raw, start, length)


TAMPERED = {codec: sealed(plaintext_of(3 * CHUNK_BYTES + 5, codec != Codec.NONE), codec)[0] for codec in Codec}


@settings(max_examples=300, deadline=None)
@given(CODECS, st.data())
def test_a_change_anywhere_is_refused(codec: Codec, data: st.DataObject) -> None:
    raw = TAMPERED[codec]
    at = data.draw(st.integers(0, len(raw) - 1))
    until = data.draw(st.integers(at, min(len(raw), at + 1200)))
    put = data.draw(st.one_of(st.binary(max_size=40), st.just(raw[at:until][::-1]), st.just(bytes((raw[at] ^ 1,)) + raw[at + 1 : until])))
    changed = raw[:at] + put + raw[until:]
    if changed == raw:
        return
    with pytest.raises(SeawallError) as caught:
        open_bytes(changed, DATA_KEY, resolve, "object")
    assert caught.value.exit_code in (CorruptError.exit_code, 10), caught.value
    with pytest.raises(SeawallError):
        # The same without a key: nothing changed is found only by who decrypts.
        frame = frame_of(changed)
        damaged = scrub(frame, lambda start, length: memoryview(changed)[start : start + length])
        if damaged:
            raise CorruptError("records are damaged")


def test_damaged_records_are_named_and_others_still_read() -> None:
    plaintext = noise("named", 5 * CHUNK_BYTES)
    raw, _, _ = sealed(plaintext)
    frame = frame_of(raw)
    broken = bytearray(raw)
    for number in (1, 3):
        broken[frame.offsets[number] + 9] ^= 255
    assert scrub(frame, lambda start, length: memoryview(broken)[start : start + length]) == [1, 3]
    assert range_of(bytes(broken), 2 * CHUNK_BYTES, CHUNK_BYTES) == plaintext[2 * CHUNK_BYTES : 3 * CHUNK_BYTES]
    with pytest.raises(CorruptError, match="record 3"):
        range_of(bytes(broken), 2 * CHUNK_BYTES, CHUNK_BYTES + 1)


def test_a_wrong_key_reads_differently_from_damage() -> None:
    raw, _, _ = sealed(b"content")
    with pytest.raises(KeyMissingError, match="another key's"):
        Opener(frame_of(raw), bytes(32))


def test_no_two_sealings_of_one_plaintext_are_alike() -> None:
    first, second = (sealed(bytes(3000))[0] for _ in range(2))
    assert first[64:96] != second[64:96], "the salt is new each time"
    frames = frame_of(first), frame_of(second)
    assert not {leaf.digest for leaf in frames[0].leaves} & {leaf.digest for leaf in frames[1].leaves}


@pytest.mark.parametrize("there", [0, 1, 1023, 1024, 3071, 3073, 9000])
def test_a_source_of_another_length_is_noticed(there: int) -> None:
    sealer = sealer_of(3072)
    with pytest.raises(SourceChangedError):
        list(sealer.parts(Source(bytes(there)).read_into, lambda nbytes: memoryview(bytearray(nbytes)), 1024))
    assert sealer.sealed is None


def test_a_seal_observes_the_plaintext_in_order() -> None:
    plaintext = noise("observed", 2500)
    seen: list[tuple[int, bytes]] = []
    parts = sealer_of(2500).parts(
        Source(plaintext).read_into, lambda nbytes: memoryview(bytearray(nbytes)), observe=lambda at, chunk: seen.append((at, bytes(chunk)))
    )
    assert len(list(parts)) == 1
    assert [at for at, _ in seen] == [0, 1024, 2048] and b"".join(chunk for _, chunk in seen) == plaintext


def test_what_does_not_fit_one_object_is_refused_before_it_is_read() -> None:
    with pytest.raises(UsageError, match="too large"):
        sealer_of(MAX_RECORDS * CHUNK_BYTES + 1)
    with pytest.raises(UsageError, match="name too long"):
        sealer_of(1, name=b"n" * (MAX_NAME_BYTES + 1))
    sealer_of(MAX_RECORDS * MAX_CHUNK_BYTES, chunk_bytes=MAX_CHUNK_BYTES)


@pytest.mark.parametrize("nbytes", [0, 1, PART_BYTES, 1 << 36, 5 << 40])
def test_no_object_needs_more_parts_than_s3_takes(nbytes: int) -> None:
    assert -(-nbytes // part_bytes_for(nbytes)) <= MAX_PARTS + 1


def test_sealing_a_stream_takes_little_memory() -> None:
    total, at = 64 << 20, 0
    block = noise("block", 1 << 20)

    def read_into(buffer: memoryview) -> int:
        nonlocal at
        count = min(len(buffer), len(block), total - at)
        buffer[:count] = block[:count]
        at += count
        return count

    tracemalloc.start()
    try:
        sealer = sealer_of(total, chunk_bytes=8 << 20)
        # As the sender does: one buffer, used again when its part is gone.
        buffer = memoryview(bytearray(sealer.part_capacity(PART_BYTES)))
        length = sum(len(part.data) for part in sealer.parts(read_into, lambda nbytes: buffer[:nbytes]))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sealer.sealed is not None and sealer.sealed.length == length > total
    assert peak < 32 << 20


def test_opening_reads_only_what_it_needs() -> None:
    plaintext = noise("reads", 300 * CHUNK_BYTES)
    raw, _, _ = sealed(plaintext)
    read: list[tuple[int, int]] = []

    def read_into(at: int, buffer: memoryview) -> int:
        read.append((at, len(buffer)))
        buffer[:] = raw[at : at + len(buffer)]
        return len(buffer)

    opener = opener_of(raw)
    assert b"".join(opener.read_range(5000, 10, read_into)) == plaintext[5000:5010]
    assert len(read) == 1 and read[0][1] == CHUNK_BYTES + 17

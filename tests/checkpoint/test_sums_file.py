"""``tensor_sums_<rank>.json``: what is written is read back, and nothing else is taken for it."""

import json
from typing import Any

import pytest

from seawall.checkpoint.sums_file import TensorSum, decode_sums, encode_sums, joint_digest, sums_name
from seawall.errors import CorruptError

SUMS = [
    TensorSum("model.w", (0, 128), 1 << 40, 0xAE8B14860A799888, "cuda"),
    TensorSum("Gewicht \u5c64 \udcff\n", (), 0, 0, "cpu"),
]


def test_what_is_written_is_read_back() -> None:
    assert decode_sums(encode_sums(3, SUMS), 3, "here") == SUMS
    assert decode_sums(encode_sums(0, []), 0, "here") == []


def test_numbers_beyond_2_to_the_53_and_checksums_are_texts() -> None:
    [row, _] = json.loads(encode_sums(0, SUMS))["tensors"]
    assert row == {"name": "model.w", "offsets": [0, 128], "nbytes": "1099511627776", "crc64": "ae8b14860a799888", "at": "cuda"}


def test_names_of_files_and_the_digest_of_all() -> None:
    assert [sums_name(rank) for rank in (0, 7, 123456)] == [
        "tensor_sums_00000.json",
        "tensor_sums_00007.json",
        "tensor_sums_123456.json",
    ]
    one, two = bytes(32), bytes([1]) * 32
    assert len({joint_digest(digests) for digests in ([], [one], [two], [one, two], [two, one])}) == 5


GOOD: dict[str, Any] = {"name": "w", "offsets": [0], "nbytes": "4", "crc64": "0" * 16, "at": "cpu"}
BAD_ROWS = [
    {"name": 1},
    {"offsets": "0"},
    {"offsets": [-1]},
    {"offsets": [True]},
    {"offsets": [1.0]},
    {"offsets": [1 << 63]},
    {"nbytes": 4},
    {"nbytes": "-4"},
    {"nbytes": "04"},
    {"crc64": "0" * 15},
    {"crc64": "A" * 16},
    {"crc64": 0},
    {"at": "moon"},
]


@pytest.mark.parametrize("change", BAD_ROWS, ids=str)
def test_a_row_that_says_something_else_is_refused(change: dict[str, Any]) -> None:
    raw = json.loads(encode_sums(0, []))
    raw["tensors"] = [GOOD]
    assert len(decode_sums(json.dumps(raw).encode(), 0, "here")) == 1
    raw["tensors"] = [GOOD | change]
    with pytest.raises(CorruptError, match="row"):
        decode_sums(json.dumps(raw).encode(), 0, "here")


@pytest.mark.parametrize("change", [{"format": 2}, {"rank": 1}, {"algorithm": "CRC-32"}, {"tensors": {}}, {"tensors": ["w"]}], ids=str)
def test_another_document_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(CorruptError):
        decode_sums(json.dumps(json.loads(encode_sums(0, [])) | change).encode(), 0, "here")


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b'{"format": 1, "format": 1}', b"\xff"])
def test_what_is_no_such_object_is_refused(raw: bytes) -> None:
    with pytest.raises(CorruptError):
        decode_sums(raw, 0, "here")

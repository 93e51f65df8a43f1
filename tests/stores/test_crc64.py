"""CRC-64/NVME against its published check value and a bit-by-bit definition."""

from hypothesis import given
from hypothesis import strategies as st

from seawall.kernels.crc64 import CHECK_VALUE, POLYNOMIAL, combine, crc64


def _by_definition(data: bytes) -> int:
    reflected = int(f"{POLYNOMIAL:064b}"[::-1], 2)
    crc = (1 << 64) - 1
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (reflected if crc & 1 else 0)
    return crc ^ ((1 << 64) - 1)


def test_the_check_value() -> None:
    assert crc64(b"123456789") == CHECK_VALUE == _by_definition(b"123456789")


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_it_is_what_the_definition_says_and_combines(a: bytes, b: bytes) -> None:
    assert crc64(a) == _by_definition(a)
    assert crc64(memoryview(b), crc64(bytearray(a))) == combine(crc64(a), crc64(b), len(b)) == crc64(a + b)

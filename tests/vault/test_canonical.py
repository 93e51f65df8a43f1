"""One document, one encoding; whatever is not that encoding is refused."""

import json
import math
from enum import IntEnum, StrEnum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.errors import CorruptError
from seawall.vault import canonical

TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF, categories=["Cs"]))
DOCUMENTS = st.dictionaries(
    TEXT,
    st.recursive(
        st.none() | st.booleans() | TEXT,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
        max_leaves=12,
    ),
    max_size=5,
)


@settings(deadline=None)
@given(DOCUMENTS)
def test_round_trip(document: dict[str, object]) -> None:
    data = canonical.encode(document)
    assert data.isascii()
    assert canonical.decode(data) == document
    assert json.loads(data) == document


def test_the_form_itself() -> None:
    document = {"b": [True, False, None], "a": 'é\U0001f30a\x7f\n"\\/', "B": {}, "": "", "name\udcff": []}
    expected = rb'{"":"","B":{},"a":"\u00e9\ud83c\udf0a\u007f\n\"\\/","b":[true,false,null],"name\udcff":[]}'
    assert canonical.encode(document) == expected
    # By code point, where UTF-16 order (RFC 8785) would put the astral key first.
    assert canonical.encode({"\U0001f30a": "", "\uffff": ""}).index(b"ffff") < canonical.encode({"\U0001f30a": "", "\uffff": ""}).index(
        b"d83c"
    )


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    BIG = 1


@pytest.mark.parametrize(
    "value", [1, 0, -1, 1.0, math.nan, b"x", (), {1}, object(), Colour.RED, Size.BIG, {1: "x"}, {None: "x"}, [[1]], {"a": {"b": 2}}]
)
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(TypeError):
        canonical.encode({"x": value})


@pytest.mark.parametrize("text", ["\ud800", "\udbff", "\udc00", "\udc7f", "\udd00", "\udfff", "a\ud83c\udf0ab"])
def test_surrogates_that_are_no_bytes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="surrogate"):
        canonical.encode({"x": text})
    with pytest.raises(ValueError, match="surrogate"):
        canonical.encode({text: "x"})


def test_a_document_is_an_object() -> None:
    for value in ([], "x", None, True):
        with pytest.raises(TypeError):
            canonical.encode(value)  # type: ignore[arg-type]  # that is the point


def nested(levels: int) -> bytes:
    return b'{"x":' * levels + b"null" + b"}" * levels


def test_depth_is_bounded_both_ways() -> None:
    assert canonical.encode(canonical.decode(nested(32))) == nested(32)
    for levels in (33, 5000, 2_000_000):
        with pytest.raises(CorruptError):
            canonical.decode(nested(levels))
    with pytest.raises(CorruptError):
        canonical.decode(b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    with pytest.raises(CorruptError):
        canonical.decode(nested(3), max_depth=2)
    deep: dict[str, object] = {}
    for _ in range(32):
        deep = {"x": deep}
    with pytest.raises(ValueError, match="too deep"):
        canonical.encode(deep)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b'"x"',
        b"null",
        b"{} ",
        b" {}",
        b"{}\n",
        b"\xef\xbb\xbf{}",
        b"{}{}",
        b'{"a": ""}',
        b'{"b":"","a":""}',
        b'{"a":"","a":""}',
        b'{"a":"","\\u0061":""}',
        b'{"a":1}',
        b'{"a":-0}',
        b'{"a":1.5}',
        b'{"a":1e3}',
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":-Infinity}',
        b'{"a":18446744073709551616}',
        b'{"a":"\\u00E9"}',
        '{"a":"é"}'.encode(),
        b'{"a":"\\/"}',
        b'{"a":"\\u000a"}',
        b'{"a":"\\ud800"}',
        b'{"a":"\\udfff"}',
        b"{'a':''}",
        b'{"a":"",}',
        b'{"a":True}',
        b'{"a":"\n"}',
        b"\x00",
        b"\xff\xfe{\x00}\x00",
    ],
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptError) as caught:
        canonical.decode(data, where="a place")
    assert caught.value.where == "a place"


def test_size_is_bounded_before_anything_is_parsed() -> None:
    data = canonical.encode({"x": "y" * 100})
    assert canonical.decode(data, max_bytes=len(data))
    with pytest.raises(CorruptError, match="larger than its bound"):
        canonical.decode(data, max_bytes=len(data) - 1)
    assert canonical.decode(memoryview(data)) == canonical.decode(bytearray(data))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60) | st.builds(lambda a, b: a + b, st.just(b'{"a":'), st.binary(max_size=20)))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        document = canonical.decode(data)
    except CorruptError:
        return
    assert canonical.encode(document) == data


@pytest.mark.parametrize("value", [0, 1, 9, 10, 2**53 + 1, 2**63, 2**64 - 1])
def test_numbers(value: int) -> None:
    assert canonical.number(value) == str(value)
    assert canonical.parse_number(str(value)) == value


@pytest.mark.parametrize("value", [-1, 2**64, True, 1.0, "1"])
def test_what_is_no_number(value: object) -> None:
    with pytest.raises(ValueError, match="no number"):
        canonical.number(value)  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize(
    "text", ["", "00", "01", "-1", "+1", " 1", "1 ", "1\n", "1_0", "1.0", "1e3", "٣", "18446744073709551616", "1" * 5000, 1, None, True]
)
def test_text_that_is_no_number(text: object) -> None:
    with pytest.raises(CorruptError):
        canonical.parse_number(text)


def test_fields_are_read_with_their_name() -> None:
    document = {
        "text": "x",
        "empty": "",
        "number": "7",
        "flag": True,
        "list": ["x"],
        "object": {"y": "z"},
        "hex": "ab" * 32,
        "base64": "AQI=",
        "time": "2026-03-01T00:00:00.000001Z",
    }
    assert canonical.text_field(document, "text") == "x"
    assert canonical.text_field(document, "empty", empty=True) == ""
    assert canonical.number_field(document, "number", least=7, most=7) == 7
    assert canonical.flag_field(document, "flag") is True
    assert canonical.list_field(document, "list", most=1) == ["x"]
    assert canonical.object_field(document, "object") == {"y": "z"}
    assert canonical.hex32_field(document, "hex") == "ab" * 32
    assert canonical.base64_field(document, "base64") == b"\x01\x02"
    assert canonical.time_field(document, "time") == "2026-03-01T00:00:00.000001Z"
    readers = [
        canonical.text_field,
        canonical.number_field,
        canonical.flag_field,
        canonical.list_field,
        canonical.object_field,
        canonical.hex32_field,
        canonical.base64_field,
        canonical.time_field,
    ]
    for reader in readers:
        with pytest.raises(CorruptError, match="'gone' is missing"):
            reader(document, "gone")
        with pytest.raises(CorruptError, match="'x' is not"):
            reader({"x": None}, "x")
    for wrong in ({"x": ""}, {"x": "y" * 4097}):
        with pytest.raises(CorruptError, match="wrong length"):
            canonical.text_field(wrong, "x")
    with pytest.raises(CorruptError, match="too small"):
        canonical.number_field(document, "number", least=8)
    with pytest.raises(CorruptError):
        canonical.number_field(document, "number", most=6)
    with pytest.raises(CorruptError, match="too many"):
        canonical.list_field(document, "list", most=0)
    for text in ("AB" * 32, "ab" * 31, "ab" * 33, "a" * 63, "ab" * 31 + "xy", "ab" * 31 + "a\n"):
        with pytest.raises(CorruptError):
            canonical.hex32_field({"x": text}, "x")
    for text in ("AQI", "AQJ=", "AQI=\n", "AQ I=", "AQ-_", "====", "é"):
        with pytest.raises(CorruptError):
            canonical.base64_field({"x": text}, "x")
    with pytest.raises(CorruptError):
        canonical.base64_field(document, "base64", most=1)
    for text in (
        "",
        "now",
        "2026-03-01T00:00:00Z",
        "2026-03-01T00:00:00.1Z",
        "2026-13-01T00:00:00.000000Z",
        "2026-03- 1T00:00:00.000000Z",
        "2026-03-01T00:00:60.000000Z",
        "0001-03-01T00:00:00.000000Z",
        "2026-03-0١T00:00:00.000000Z",
        "2026-03-01T00:00:00.000000+00:00",
    ):
        with pytest.raises(CorruptError):
            canonical.time_field({"x": text}, "x")
    canonical.only_fields(document, set(document))
    with pytest.raises(CorruptError, match="unknown fields"):
        canonical.only_fields(document, set(document) - {"text"})
    canonical.check_format({"format": "1"})
    for other in ({}, {"format": "2"}, {"format": None}):
        with pytest.raises(CorruptError, match="another format"):
            canonical.check_format(other)

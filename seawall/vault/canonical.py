"""The one JSON form of everything that seawall signs or stores (docs/spec/log-and-trust.md, section 1).

A document has exactly one encoding: ASCII bytes, keys sorted by code point, no spaces. There are no numbers, because
readers in other languages pass them through binary64 and lose the low bits of a 64-bit value; a number is text
(:func:`number`). File names that are no UTF-8 arrive from the operating system as U+DC80 to U+DCFF (PEP 383) and
are kept as those escapes.
"""

import base64
import binascii
import json
import re
from typing import Any, NoReturn

from seawall.clock import parse_utc, utc_text
from seawall.errors import CorruptError

Document = dict[str, Any]
"""A JSON object whose values are text, booleans, None, lists and objects, and nothing else."""

FORMAT = "1"
"""Value of the field ``format`` in every document of format 1."""

MAX_DEPTH = 32
"""Deepest nesting that is written or read; the deepest document of format 1 has 7 levels."""

MAX_BYTES = 16 << 20
"""Default bound on a document: an objects table of 40,000 rows is about 8 MiB."""

MAX_NUMBER = 2**64 - 1

_SURROGATE = re.compile("[\ud800-\udfff]")
_FOREIGN_SURROGATE = re.compile("[\ud800-\udc7f\udd00-\udfff]")
_NUMBER = re.compile(r"(?:0|[1-9][0-9]{0,19})\Z", re.ASCII)
_HEX = re.compile(r"(?:[0-9a-f]{2})*\Z", re.ASCII)


def encode(document: Document) -> bytes:
    """The canonical bytes of ``document``.

    ``TypeError`` for anything but text, booleans, None, lists and dictionaries with text keys (numbers too: see
    :func:`number`), ``ValueError`` for surrogates other than U+DC80..U+DCFF and for nesting beyond :data:`MAX_DEPTH`.
    """
    if not isinstance(document, dict):
        raise TypeError(f"a document is a dictionary, not {type(document).__name__}")
    _check(document, MAX_DEPTH)
    return _dump(document)


def decode(data: bytes | bytearray | memoryview, *, where: str = "", max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Document:
    """The document whose canonical encoding is ``data``; ``CorruptError`` for any other bytes.

    Refused are: more than ``max_bytes``, other encodings of the same document (spaces, order, escapes, trailing
    bytes), repeated keys, numbers, NaN, nesting beyond ``max_depth``, and anything but an object at the top.
    ``where`` names the document in errors.
    """
    if len(data) > max_bytes:
        raise CorruptError("a document is larger than its bound", where=where, why=f"{len(data)} bytes, at most {max_bytes} allowed")
    raw = bytes(data)
    try:
        document = json.loads(
            raw.decode("ascii"),
            object_pairs_hook=_object,
            parse_int=_refuse_number,
            parse_float=_refuse_number,
            parse_constant=_refuse_number,
        )
        if not isinstance(document, dict):
            raise TypeError("the top of a document is an object")
        _check(document, max_depth)
        again = _dump(document)
    except (ValueError, TypeError, RecursionError) as problem:
        raise CorruptError("a document is not canonical JSON", where=where, why=str(problem) or type(problem).__name__) from None
    if again != raw:
        raise CorruptError("a document is not canonical JSON", where=where, why="the same content is encoded differently")
    return document


def _dump(document: Document) -> bytes:
    return json.dumps(document, ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _check(value: object, depth: int) -> None:
    # Exact types: a subclass (an IntEnum, a str Enum) may be written by json as something else than it looks like.
    kind = type(value)
    if kind is str:
        _check_text(value)  # type: ignore[arg-type]  # kind is str, which mypy does not narrow
    elif kind is dict:
        if depth == 0:
            raise ValueError("nesting is too deep")
        for key, item in value.items():  # type: ignore[attr-defined]  # kind is dict
            if type(key) is not str:
                raise TypeError(f"a key is text, not {type(key).__name__}")
            _check_text(key)
            _check(item, depth - 1)
    elif kind is list:
        if depth == 0:
            raise ValueError("nesting is too deep")
        for item in value:  # type: ignore[attr-defined]  # kind is list
            _check(item, depth - 1)
    elif value is not None and kind is not bool:
        raise TypeError(f"{kind.__name__} has no place in a document")


def _check_text(text: str) -> None:
    # Two neighbouring surrogates would be read back as one astral character, so a text would have two encodings.
    if not text.isascii() and _SURROGATE.search(text) and _FOREIGN_SURROGATE.search(text):
        raise ValueError("text holds a surrogate that is no escaped byte")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key is repeated")
    return result


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"the number {text[:32]} is not written as text")


def number(value: int) -> str:
    """Canonical text of a number from 0 to 2**64 - 1; ``ValueError`` outside that range."""
    if type(value) is not int or not 0 <= value <= MAX_NUMBER:
        raise ValueError(f"{value!r} is no number from 0 to 2**64 - 1")
    return str(value)


def parse_number(text: object, *, where: str = "", most: int = MAX_NUMBER) -> int:
    """Back from :func:`number`: decimal ASCII digits without sign or leading zeros; ``CorruptError`` otherwise."""
    if not isinstance(text, str) or not _NUMBER.match(text) or int(text) > most:
        raise CorruptError("a number is not canonical", where=where, why=f"{str(text)[:40]!r} is no decimal text from 0 to {most}")
    return int(text)


def _field(document: Document, name: str, kind: type, words: str, where: str) -> Any:
    # Items of lists arrive here unchecked: "name" in a text is a search, and in None a crash.
    if type(document) is not dict:
        raise CorruptError(f"what should have a field {name!r} is no object", where=where, why=f"it is {type(document).__name__}")
    if name not in document:
        raise CorruptError(f"the field {name!r} is missing", where=where)
    value = document[name]
    if type(value) is not kind:
        raise CorruptError(f"the field {name!r} is not {words}", where=where, why=f"it is {type(value).__name__}")
    return value


def text_field(document: Document, name: str, *, where: str = "", most: int = 4096, empty: bool = False) -> str:
    """A text of 1 (0 with ``empty``) to ``most`` characters."""
    value: str = _field(document, name, str, "text", where)
    if len(value) > most or not (value or empty):
        raise CorruptError(f"the field {name!r} has a wrong length", where=where, why=f"{len(value)} characters, at most {most} allowed")
    return value


def number_field(document: Document, name: str, *, where: str = "", least: int = 0, most: int = MAX_NUMBER) -> int:
    """A number as text."""
    value = parse_number(_field(document, name, str, "a number as text", where), where=f"{where} {name}".strip(), most=most)
    if value < least:
        raise CorruptError(f"the field {name!r} is too small", where=where, why=f"{value} is below {least}")
    return value


def flag_field(document: Document, name: str, *, where: str = "") -> bool:
    """True or false."""
    value: bool = _field(document, name, bool, "true or false", where)
    return value


def list_field(document: Document, name: str, *, where: str = "", most: int = 1_000_000) -> list[Any]:
    """A list of at most ``most`` items, of any kind."""
    value: list[Any] = _field(document, name, list, "a list", where)
    if len(value) > most:
        raise CorruptError(f"the field {name!r} has too many items", where=where, why=f"{len(value)}, at most {most} allowed")
    return value


def objects_field(document: Document, name: str, *, where: str = "", most: int = 1_000_000) -> list[Document]:
    """A list of at most ``most`` objects."""
    value = list_field(document, name, where=where, most=most)
    if any(type(item) is not dict for item in value):
        raise CorruptError(f"an item of {name!r} is not an object", where=where)
    return value


def same_form(again: bytes, raw: bytes | memoryview, *, where: str = "") -> None:
    """``CorruptError`` unless what was read is written back as the same bytes: no unknown, missing or spare field in any part of it."""
    if again != raw:
        raise CorruptError("a document has fields that this reader does not know, or lacks some", where=where)


def object_field(document: Document, name: str, *, where: str = "") -> Document:
    """An object."""
    value: Document = _field(document, name, dict, "an object", where)
    return value


def hex_text(value: object, nbytes: int, *, where: str = "") -> str:
    """``value`` itself if it is ``nbytes`` bytes in lower-case hex."""
    if not isinstance(value, str) or len(value) != 2 * nbytes or not _HEX.match(value):
        raise CorruptError("a hex value is malformed", where=where, why=f"{str(value)[:80]!r} is not {nbytes} bytes in lower-case hex")
    return value


def hex_field(document: Document, name: str, nbytes: int, *, where: str = "") -> str:
    """``nbytes`` bytes in lower-case hex, as text."""
    return hex_text(_field(document, name, str, "hex text", where), nbytes, where=f"{where} {name}".strip())


def hex32_field(document: Document, name: str, *, where: str = "") -> str:
    """A SHA-256 digest in lower-case hex, as text."""
    return hex_field(document, name, 32, where=where)


def base64_field(document: Document, name: str, *, where: str = "", most: int = MAX_BYTES) -> bytes:
    """Bytes in standard base64 with padding (RFC 4648 section 4); other spellings of the same bytes are refused."""
    text: str = _field(document, name, str, "base64 text", where)
    try:
        value = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        value = None
    # Re-encoding catches set padding bits, which b64decode lets through.
    if value is None or base64_text(value) != text or len(value) > most:
        raise CorruptError(f"the field {name!r} is not canonical base64 within its bound", where=where)
    return value


def base64_text(value: bytes) -> str:
    """Standard base64 with padding."""
    return base64.b64encode(value).decode("ascii")


def time_field(document: Document, name: str, *, where: str = "") -> str:
    """A moment in the form of :func:`seawall.clock.utc_text`, as text."""
    text: str = _field(document, name, str, "a moment as text", where)
    try:
        # Written again and compared, because strptime also takes a blank for a digit.
        if utc_text(parse_utc(text)) != text:
            raise ValueError(text)
    except ValueError:
        raise CorruptError(f"the field {name!r} is no moment", where=where, why=f"{text[:40]!r}") from None
    return text


def only_fields(document: Document, names: frozenset[str] | set[str], *, where: str = "") -> None:
    """``CorruptError`` if ``document`` has a field that is not in ``names``: format 1 has no room for unread meaning."""
    extra = sorted(set(document) - names)
    if extra:
        raise CorruptError("a document has unknown fields", where=where, why=", ".join(extra)[:200])


def check_format(document: Document, *, where: str = "") -> None:
    """``CorruptError`` unless the field ``format`` is that of format 1."""
    if document.get("format") != FORMAT:
        raise CorruptError(
            "a document has another format", where=where, why=f"format {str(document.get('format'))[:40]!r}, this version reads {FORMAT!r}"
        )

"""Documents and envelopes for the second reader (log-and-trust.md sections 1 to 3, and the fields of format-1.md)."""

import base64
import hashlib
import json
import re
from datetime import datetime
from typing import Any, NoReturn

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

Keys = dict[str, bytes]


class RefusedError(Exception):
    """``args[0]`` is the outcome."""


def refuse(outcome: str, why: str = "") -> NoReturn:
    raise RefusedError(outcome, why)


def need(condition: object, why: str = "", outcome: str = "corrupt") -> None:
    if not condition:
        refuse(outcome, why)


def sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


# --- documents and envelopes (log-and-trust.md, sections 1 and 3) ---


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    need(len(dict(pairs)) == len(pairs), "a name twice")
    return dict(pairs)


def document(raw: bytes, shape: dict[str, Any], most: int = 16 << 20) -> dict[str, Any]:
    """The document, its fields checked against ``shape``."""
    need(len(raw) <= most, "too large")
    try:
        value = json.loads(raw.decode("ascii"), object_pairs_hook=unique, parse_int=str.encode, parse_float=str.encode)
        need(json.dumps(value, sort_keys=True, separators=(",", ":")).encode() == raw, "not canonical")
    except (ValueError, TypeError, RecursionError) as error:
        refuse("corrupt", str(error))
    need(isinstance(value, dict) and value.get("format", "1") == "1", "another format")
    fits(value, shape)
    return value  # type: ignore[no-any-return]  # json gives Any, and it is a dict


def fits(value: Any, shape: Any) -> None:
    """``shape``: a dict (these fields and no others), a list (of one shape), a function or a pattern; in a tuple it may be null."""
    if isinstance(shape, tuple):
        if value is not None:
            fits(value, shape[0])
    elif isinstance(shape, dict):
        need(isinstance(value, dict) and value.keys() == shape.keys(), f"fields of {str(value)[:60]}")
        for name, inner in shape.items():
            fits(value[name], inner)
    elif isinstance(shape, list):
        need(isinstance(value, list), "no array")
        for item in value:
            fits(item, shape[0])
    elif callable(shape):
        need(shape(value), f"{str(value)[:60]!r}")
    else:
        need(isinstance(value, str) and re.fullmatch(shape, value, re.DOTALL), f"{str(value)[:60]!r} is no {shape}")


def number(value: Any) -> bool:
    return isinstance(value, str) and bool(re.fullmatch("0|[1-9][0-9]{0,19}", value)) and int(value) < 1 << 64


def time(value: Any) -> bool:
    try:
        return (
            len(value) == 27
            and value.endswith("Z")
            and value >= "1000"
            and bool(datetime.strptime(value + "+0000", "%Y-%m-%dT%H:%M:%S.%fZ%z"))
        )
    except (TypeError, ValueError):
        return False


def posix(text: Any) -> bytes:
    need(isinstance(text, str) and text, "no text")
    raw: bytes = text.encode("utf-8", "surrogateescape")
    need(b"\0" not in raw and raw.decode("utf-8", "surrogateescape") == text, "another spelling of a name")
    return raw


def name(value: Any) -> bool:
    raw = posix(value)
    return len(raw) <= 4096 and all(part not in (b"", b".", b"..") and len(part) <= 255 for part in raw.split(b"/"))


def identity(value: Any) -> bool:
    match = re.fullmatch("(0|-?[1-9][0-9]{0,18}):[0-9]{1,20}:[0-9]{1,20}", value) if isinstance(value, str) else None
    return match is not None and -(2**63) <= int(match[1]) < 2**63


def texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def mode(value: Any) -> bool:
    return number(value) and int(value) <= 0o7777


H8, H16, H32 = "[0-9a-f]{16}", "[0-9a-f]{32}", "[0-9a-f]{64}"
NUMBERS = "(0|[1-9][0-9]*)(,(0|[1-9][0-9]*))*|"
ROW = {"name": "(file|batch)-(0|[1-9][0-9]*).sea|inventory.sea|plan.sea", "length": number, "trailer": H32, "crc64": H8, "root": H32}
TABLE = {"format": "1", "sealing": H16, "objects": [ROW]}
PIECE = {"file": number, "nbytes": number, "start": (number,), "offsets": NUMBERS, "shape": NUMBERS, "crc64": (H8,)}
TREE = {
    "folders": [{"name": name, "mode": mode}],
    "links": [{"name": name, "target": lambda value: bool(posix(value))}],
    "pointer": ({"name": name, "content": ".{1,4096}"},),
    "tensors": [{"name": ".*", "dtype": ".*", "shape": NUMBERS, "pieces": [PIECE]}],
}
COMMON = {"format": "1", "run": ".{1,100}", "sealing": H16, "step": number, "layout": ".+", "world_size": (number,), "commit_mark": (name,)}
FILE = {"name": name, "size": number, "mode": mode, "identity": identity}
INVENTORY = {**COMMON, **TREE, "files": [{**FILE, "plaintext": H32}], "notes": texts}
PLAN = {**COMMON, **TREE, "epoch": number, "attempt": number, "mark": H32, "codec": number, "saved_at": time, "batches": number}
PLAN["files"] = [{**FILE, "batch": number}]
SEALED = {"n": number, "row": ROW, "plaintext": H32, "pieces": [H8]}
BATCH: dict[str, Any] = {"format": "1", "sealing": H16, "batch": number, "files": [SEALED]}
BATCH["versions"] = lambda value: isinstance(value, dict) and all(map(texts, value.values()))
COUNTS = dict.fromkeys(("epoch", "committer_epoch", "step", "files", "plaintext_bytes", "stored_bytes"), number)
DIGESTS = dict.fromkeys(("objects", "keys", "inventory", "root"), H32)
MANIFEST = {"format": "1", "run": ".{1,100}", "sealing": H16, "saved_at": time, "base": (H32,), **COUNTS, **DIGESTS}
WRAP = {"kind": ".{1,32}", "id": H16, "wrap": "([0-9a-f]{2}){1,4096}"}
WRAPS = {"format": "1", "run": ".{1,100}", "sealing": H16, "version": number, "commitment": H32, "recipients": [WRAP]}
ENVELOPE = {"payload": ".*", "payloadType": ".{1,200}", "signatures": [{"keyid": H16, "sig": ".*"}]}


def base64_of(text: str) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        refuse("corrupt", "base64")
    need(base64.b64encode(raw).decode() == text, "base64")
    return raw


def statement(raw: bytes, kind: str, keys: Keys, shape: dict[str, Any], most: int) -> dict[str, Any]:
    envelope = document(raw, ENVELOPE, most)
    payload = base64_of(envelope["payload"])
    signatures = [(item["keyid"], base64_of(item["sig"])) for item in envelope["signatures"]]
    need(1 <= len(signatures) <= 16 and len(dict(signatures)) == len(signatures) and all(len(s) == 64 for _, s in signatures), "signatures")
    need(envelope["payloadType"] == kind, "another type", "trust")
    signed = b"DSSEv1 %d %b %d %b" % (len(kind), kind.encode(), len(payload), payload)
    counting = [(keys[key], signature) for key, signature in signatures if key in keys]
    need(counting, "nobody who counts", "trust")
    for key, signature in counting:
        need(verifies(key, signature, signed), "a wrong signature", "trust")
    return document(payload, shape, most)


def verifies(key: bytes, signature: bytes, message: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except InvalidSignature:
        return False
    return True

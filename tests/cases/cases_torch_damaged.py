"""More torch files that are damaged, and the old stream."""

import io
import pickle
import struct

import torch

from tests.cases.cases_torch_odd import zip_case
from tests.cases.make_cases import (
    adam_state,
    case,
    cut,
    flip,
    legacy_bytes,
    put,
    put_legacy,
    put_torch,
    record_span,
    rezip,
    torch_bytes,
    weights,
    zero,
)

# ===== damage


@zip_case("zip-corrupt-cut-one-byte", "corrupt", "truncated", "the last byte is missing")
def _(d):
    cut(put_torch(d / "model.pt", weights(120)), -1)


@zip_case("zip-corrupt-cut-inside-directory", "corrupt", "truncated", "the cut is inside the directory")
def _(d):
    cut(put_torch(d / "model.pt", weights(121)), -150)


@zip_case("zip-corrupt-cut-to-head", "corrupt", "truncated", "only the first 100 bytes are left")
def _(d):
    cut(put_torch(d / "model.pt", weights(121)), 100)


@zip_case("zip-corrupt-bit-flip-in-pickle", "corrupt", "bit-flip", "one bit differs in the structure record", also=["hostile"])
def _(d):
    p = put_torch(d / "model.pt", weights(122))
    flip(p, record_span(p, "data.pkl")[0] + 60, 0x02)


@zip_case(
    "zip-corrupt-bit-flip-in-directory",
    "corrupt",
    "bit-flip",
    "one bit differs in the size that the directory gives for a record",
    also=["hostile"],
)
def _(d):
    p = put_torch(d / "model.pt", weights(123))
    raw = p.read_bytes()
    flip(p, raw.rfind(b"PK\x01\x02") + 20, 0x01)


@zip_case("zip-corrupt-sector-zeroed", "corrupt", "zeroed-region", "512 bytes inside a weight became zeros", blame=["data/0"])
def _(d):
    p = put_torch(d / "model.pt", weights(124))
    zero(p, record_span(p, "data/0")[0] + 256, 512)


@zip_case("zip-corrupt-all-zeros", "corrupt", "zeroed-region", "right length, nothing but zeros", also=["incomplete"])
def _(d):
    put(d / "model.pt", bytes(20_000))


@zip_case("zip-corrupt-head-zeroed", "corrupt", "zeroed-region", "the first 4 KiB are zeros")
def _(d):
    p = put_torch(d / "model.pt", {"w": torch.ones(4096)})
    zero(p, 0, 4096)


@zip_case("zip-corrupt-trailing-bytes", "corrupt", "length-mismatch", "70,000 bytes of another file follow", also=["warn"])
def _(d):
    put(d / "model.pt", torch_bytes(weights(125)) + b"\x55" * 70_000)


@zip_case("zip-corrupt-record-short", "corrupt", "length-mismatch", "a storage record is shorter than its tensor", blame=["data/0"])
def _(d):
    p = put_torch(d / "model.pt", weights(126))
    rezip(p, lambda n, b: b[:-64] if n.endswith("data/0") else b)


@zip_case("zip-corrupt-no-structure", "corrupt", "missing-record", "data.pkl is missing", blame=["data.pkl"])
def _(d):
    p = put_torch(d / "model.pt", weights(127))
    rezip(p, lambda n, b: None if n.endswith("data.pkl") else b)


@zip_case("zip-corrupt-no-version", "corrupt", "missing-record", "the version record is missing, and the loader wants it", also=["warn"])
def _(d):
    p = put_torch(d / "model.pt", weights(127))
    rezip(p, lambda n, b: None if n.endswith("version") else b)


@zip_case("zip-corrupt-pickle-cut", "corrupt", "truncated", "the structure record is cut, the archive around it is whole")
def _(d):
    p = put_torch(d / "model.pt", weights(128))
    rezip(p, lambda n, b: b[: len(b) // 2] if n.endswith("data.pkl") else b)


@zip_case("zip-corrupt-middle-missing", "corrupt", "length-mismatch", "64 bytes in the middle are missing", also=["hostile"])
def _(d):
    p = put_torch(d / "model.pt", weights(129))
    raw = p.read_bytes()
    put(p, raw[:1500] + raw[1564:])


@zip_case("zip-corrupt-lfs-pointer", "corrupt", "not-a-checkpoint", "a large-file pointer instead of the file")
def _(d):
    put(d / "model.pt", "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 12345\n")


@zip_case("zip-corrupt-xml-error", "corrupt", "not-a-checkpoint", "an object store's error document")
def _(d):
    put(d / "model.pt", '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code></Error>')


@zip_case("zip-corrupt-json-error", "corrupt", "not-a-checkpoint", "a JSON error message")
def _(d):
    put(d / "model.pt", '{"error": {"code": 401, "message": "Invalid credentials"}}')


@zip_case("zip-corrupt-text-error", "corrupt", "not-a-checkpoint", "a line of text")
def _(d):
    put(d / "model.pt", "Repository not found, or access to it is restricted.\n")


@zip_case(
    "zip-corrupt-two-ends-disagree", "corrupt", "bad-header", "the two end records of the zip give different counts", also=["hostile"]
)
def _(d):
    p = put_torch(d / "model.pt", weights(130))
    raw = bytearray(p.read_bytes())
    struct.pack_into("<Q", raw, raw.rfind(b"PK\x06\x06") + 32, 3)
    put(p, bytes(raw))


@zip_case("zip-corrupt-negative-size", "corrupt", "bad-header", "a tensor has a negative length", also=["hostile"])
def _(d):
    p = put_torch(d / "model.pt", {"w": torch.ones(7, 3)})
    rezip(p, lambda n, b: b.replace(b"K\x07K\x03\x86", b"J\xf9\xff\xff\xffK\x03\x86") if n.endswith("data.pkl") else b)


@zip_case("zip-corrupt-huge-stride", "corrupt", "bad-offsets", "a stride reaches far outside of the storage", also=["hostile"])
def _(d):
    p = put_torch(d / "model.pt", {"w": torch.ones(7, 3)})
    rezip(p, lambda n, b: b.replace(b"K\x03K\x01\x86", b"J\xff\xff\xff\x7fK\x01\x86") if n.endswith("data.pkl") else b)


@zip_case("zip-corrupt-offset-behind-storage", "corrupt", "bad-offsets", "a view begins behind the end of its storage", also=["hostile"])
def _(d):
    w = torch.ones(77)
    p = put_torch(d / "model.pt", {"w": w[13:]})
    rezip(p, lambda n, b: b.replace(b"K\x0dK\x40\x85", b"K\xf0K\x40\x85") if n.endswith("data.pkl") else b)


# ===== the old stream


@case(
    "legacy-ok-tied-and-nested",
    "torch-legacy",
    "ok",
    "shared-storage",
    "tied weights and optimizer state in the old stream",
    target="old.pth",
)
def _(d):
    sd = weights(140)
    sd["lm_head.weight"] = sd["embed.weight"]
    put_legacy(d / "old.pth", {"model": sd, "optimizer": adam_state(sd.values(), 3), "epoch": 2})


@case(
    "legacy-ok-written-by-torch", "torch-legacy", "ok", "old-container", "the old stream as today's torch still writes it", target="old.pth"
)
def _(d):
    put_torch(d / "old.pth", weights(141), _use_new_zipfile_serialization=False)


@case("legacy-ok-dtypes", "torch-legacy", "ok", "odd-dtype", "bf16, fp16, bool, int64, float8 in the old stream", target="old.pth")
def _(d):
    put_torch(
        d / "old.pth",
        {str(k): torch.ones(5).to(k) for k in (torch.bfloat16, torch.float16, torch.bool, torch.int64, torch.float64)},
        _use_new_zipfile_serialization=False,
    )


@case("legacy-ok-empty", "torch-legacy", "ok", "empty", "an empty dictionary in the old stream", target="old.pth", also=["warn"])
def _(d):
    put_legacy(d / "old.pth", {})


@case(
    "legacy-ok-two-objects",
    "torch-legacy",
    "ok",
    "odd-container",
    "two objects were saved one after another",
    target="old.pth",
    also=["warn"],
)
def _(d):
    put(d / "old.pth", legacy_bytes(weights(142)) + legacy_bytes({"step": 3}))


@case(
    "legacy-warn-nan",
    "torch-legacy",
    "warn",
    "non-finite",
    "NaN in the old stream",
    target="old.pth",
    blame=["layers.0.bias"],
    also=["corrupt"],
)
def _(d):
    sd = weights(143)
    sd["layers.0.bias"][1] = float("nan")
    put_legacy(d / "old.pth", sd)


@case(
    "legacy-corrupt-cut-in-pickle",
    "torch-legacy",
    "corrupt",
    "truncated",
    "the cut is in the structure",
    target="old.pth",
    blame=["old.pth"],
)
def _(d):
    cut(put_legacy(d / "old.pth", weights(144)), 300)


@case("legacy-corrupt-cut-in-magic", "torch-legacy", "corrupt", "truncated", "only 10 bytes are left", target="old.pth", blame=["old.pth"])
def _(d):
    cut(put_legacy(d / "old.pth", weights(144)), 10)


@case(
    "legacy-corrupt-cut-one-byte", "torch-legacy", "corrupt", "truncated", "the last byte is missing", target="old.pth", blame=["old.pth"]
)
def _(d):
    cut(put_legacy(d / "old.pth", weights(145)), -1)


# Nothing tells any more that it was the old stream.
@case(
    "legacy-corrupt-leading-bytes",
    "torch-zip",
    "corrupt",
    "length-mismatch",
    "a chunk size line stands in front",
    target="old.pth",
    blame=["old.pth"],
)
def _(d):
    put(d / "old.pth", b"2b80\r\n" + legacy_bytes(weights(146)))


@case(
    "legacy-corrupt-count-flipped",
    "torch-legacy",
    "corrupt",
    "bit-flip",
    "the element count of a storage differs by one bit",
    target="old.pth",
    blame=["old.pth"],
)
def _(d):
    raw = legacy_bytes({"w": torch.ones(100)})
    p = put(d / "old.pth", raw)
    flip(p, len(raw) - 400 - 8, 0x01)


@case(
    "legacy-corrupt-protocol", "torch-legacy", "corrupt", "bad-header", "the stream says protocol 1002", target="old.pth", blame=["old.pth"]
)
def _(d):
    raw = legacy_bytes(weights(147))
    put(d / "old.pth", raw.replace(pickle.dumps(1001, protocol=2), pickle.dumps(1002, protocol=2), 1))


@case(
    "legacy-corrupt-key-missing",
    "torch-legacy",
    "corrupt",
    "missing-record",
    "the list of storages is empty",
    target="old.pth",
    blame=["old.pth"],
)
def _(d):
    out = io.BytesIO(legacy_bytes({"w": torch.ones(4)}))
    keys = pickle.dumps(["0"], protocol=2)
    raw = out.getvalue()
    at = raw.rfind(keys)
    put(d / "old.pth", raw[:at] + pickle.dumps([], protocol=2))

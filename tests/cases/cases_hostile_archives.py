"""More hostile zip archives. Every payload, if it ran, would only create the marker file."""

import pickle
import struct
import zipfile

import torch

from tests.cases.make_cases import case, put, put_torch, rezip, shell_payload, weights


@case(
    "hostile-second-pickle-record",
    "torch-zip",
    "hostile",
    "code-execution",
    "a second data.pkl under another folder",
    target="model.pt",
    blame=["data.pkl"],
)
def _(d):
    p = put_torch(d / "model.pt", weights(601))
    rezip(p, extra=[("other/data.pkl", pickle.dumps(shell_payload(), protocol=2))])


@case(
    "hostile-duplicate-record",
    "torch-zip",
    "hostile",
    "odd-container",
    "two records named data.pkl: the scanner reads one, the loader the other",
    target="model.pt",
    blame=["data.pkl"],
)
def _(d):
    p = put_torch(d / "model.pt", weights(602))
    with zipfile.ZipFile(p) as z:
        name = next(n for n in z.namelist() if n.endswith("data.pkl"))
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rezip(p, extra=[(name, pickle.dumps(shell_payload(), protocol=2))])


@case(
    "hostile-name-differs-inside",
    "torch-zip",
    "hostile",
    "odd-container",
    "the directory and the record disagree about the name",
    target="model.pt",
    blame=["data/0"],
)
def _(d):
    p = put_torch(d / "model.pt", weights(603))
    raw = p.read_bytes()
    at = raw.rfind(b"data/0PK")
    put(p, raw[:at] + b"data/9" + raw[at + 6 :] if at > 0 else raw.replace(b"archive/data/0", b"archive/data/9", 1))


@case(
    "hostile-marked-encrypted",
    "torch-zip",
    "hostile",
    "odd-container",
    "the encryption bit makes scanners skip the record",
    target="model.pt",
    blame=["model.pt"],
)
def _(d):
    p = put_torch(d / "model.pt", {"w": torch.ones(2), "x": shell_payload()})
    raw = bytearray(p.read_bytes())
    at = raw.find(b"PK\x01\x02")
    raw[at + 8] |= 1
    put(p, bytes(raw))


@case(
    "hostile-bomb-in-structure",
    "torch-zip",
    "hostile",
    "zip-bomb",
    "the structure record inflates to 80 MiB",
    target="model.pt",
    blame=["data.pkl"],
)
def _(d):
    p = put_torch(d / "model.pt", {"w": torch.zeros(4)})
    rezip(p, lambda n, b: b"\x80\x02" + b"N0" * (40 << 20) + b"N." if n.endswith("data.pkl") else b, zipfile.ZIP_DEFLATED)


@case(
    "hostile-bomb-side-record",
    "torch-zip",
    "hostile",
    "zip-bomb",
    "a record that nothing uses inflates to 64 MiB",
    target="model.pt",
    blame=["extra"],
)
def _(d):
    p = put_torch(d / "model.pt", {"w": torch.zeros(4)})
    rezip(p, compression=zipfile.ZIP_DEFLATED, extra=[("archive/extra", bytes(64 << 20))])


@case(
    "hostile-overlapping-records",
    "torch-zip",
    "hostile",
    "zip-bomb",
    "two records of the directory are the same bytes",
    target="model.pt",
    blame=["model.pt"],
)
def _(d):
    p = put_torch(d / "model.pt", {"a": torch.zeros(16), "b": torch.ones(16)})
    rezip(p)
    raw = bytearray(p.read_bytes())
    first = raw.find(b"PK\x01\x02")
    entries = []
    at = first
    while raw[at : at + 4] == b"PK\x01\x02":
        n, e, c = struct.unpack_from("<HHH", raw, at + 28)
        entries.append((at, bytes(raw[at + 46 : at + 46 + n])))
        at += 46 + n + e + c
    where = {name: at for at, name in entries}
    a = next(at for name, at in where.items() if name.endswith(b"data/0"))
    b = next(at for name, at in where.items() if name.endswith(b"data/1"))
    raw[b + 42 : b + 46] = raw[a + 42 : a + 46]
    put(p, bytes(raw))


@case(
    "hostile-absolute-entry",
    "torch-zip",
    "hostile",
    "path-traversal",
    "a record named by an absolute path",
    target="model.pt",
    blame=["/escape.txt"],
)
def _(d):
    rezip(put_torch(d / "model.pt", weights(604)), extra=[("/escape.txt", b"x")])


@case(
    "hostile-windows-entry",
    "torch-zip",
    "hostile",
    "path-traversal",
    "a record that climbs out with backslashes",
    target="model.pt",
    blame=["escape.txt"],
)
def _(d):
    rezip(put_torch(d / "model.pt", weights(605)), extra=[("archive\\..\\..\\escape.txt", b"x")])


@case("hostile-link-entry", "torch-zip", "hostile", "path-traversal", "a record that is a symbolic link", target="model.pt", blame=["link"])
def _(d):
    p = put_torch(d / "model.pt", weights(606))
    with zipfile.ZipFile(p, "a") as z:
        info = zipfile.ZipInfo("archive/link")
        info.external_attr = 0o120777 << 16
        z.writestr(info, "/etc/hostname")

"""Further routes to code: pickles in bytes, what stands before a break, names that only a loader finds; and honest files like them."""

import os
import pickle
import struct

import torch

from tests.cases.cases_hostile_pickles import COMMAND, put_pickled, text
from tests.cases.make_cases import case, legacy_bytes, put, put_dcp, put_torch, rezip, shell_payload, weights

EVIL = b"cposix\nsystem\n(S'" + COMMAND + b"'\ntR"
LOAD = b"ctorch.storage\n_load_from_bytes\n"


def raw(value):
    return b"B" + struct.pack("<I", len(value)) + value


def loading(*, inner):
    """Opcodes that have ``_load_from_bytes`` read what ``inner`` pushes."""
    return b"\x80\x02" + LOAD + inner + b"\x85R."


@case(
    "hostile-loaded-protocol-1",
    "torch-zip",
    "hostile",
    "code-execution",
    "a pickle in bytes for _load_from_bytes that says protocol 1",
    target="model.pt",
    blame=["posix.system"],
)
def _(d):
    put_pickled(d / "model.pt", loading(inner=raw(b"\x80\x01" + EVIL + b".")))


@case(
    "hostile-loaded-begins-with-a-value",
    "torch-zip",
    "hostile",
    "code-execution",
    "a pickle in bytes that begins with an opcode few pickles begin with",
    target="model.pt",
    blame=["posix.system"],
)
def _(d):
    put_pickled(d / "model.pt", loading(inner=raw(b"N0" + EVIL + b".")))


@case(
    "hostile-loaded-broken",
    "torch-zip",
    "hostile",
    "code-execution",
    "a pickle in bytes that breaks off behind its payload",
    target="model.pt",
    blame=["posix.system"],
)
def _(d):
    put_pickled(d / "model.pt", loading(inner=raw(b"\x80\x02" + EVIL + b"\xff\xff")))


@case(
    "hostile-loaded-encoded",
    "torch-zip",
    "hostile",
    "code-execution",
    "the bytes for _load_from_bytes come from _codecs.encode with another codec than latin1",
    target="model.pt",
    blame=["model.pt"],
)
def _(d):
    put_pickled(d / "model.pt", loading(inner=b"c_codecs\nencode\n" + text((EVIL + b".").decode()) + text("utf-8") + b"\x86R"))


@case(
    "hostile-loaded-listed",
    "torch-zip",
    "hostile",
    "code-execution",
    "the bytes for _load_from_bytes are made of a list of numbers",
    target="model.pt",
    blame=["model.pt"],
)
def _(d):
    numbers = b"".join(b"K" + bytes([number]) for number in EVIL + b".")
    put_pickled(d / "model.pt", loading(inner=b"cbuiltins\nbytes\n(" + numbers + b"l\x85R"))


@case(
    "hostile-loaded-by-another",
    "torch-zip",
    "hostile",
    "code-execution",
    "_load_from_bytes is handed to a rebuild function, which calls it",
    target="model.pt",
    blame=["model.pt"],
)
def _(d):
    made = b"c_codecs\nencode\n" + text((EVIL + b".").decode()) + text("utf-8") + b"\x86R\x85"
    put_pickled(d / "model.pt", b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(" + LOAD + b"ctorch\nTensor\n" + made + b"NtR.")


@case(
    "hostile-loaded-behind-many",
    "torch-zip",
    "hostile",
    "code-execution",
    "seventy harmless pickles in bytes stand before the one that is not",
    target="model.pt",
    blame=["posix.system"],
)
def _(d):
    decoys = b"".join(raw(pickle.dumps([n, "decoy"], 2)) for n in range(70))
    put_pickled(d / "model.pt", b"\x80\x02(" + decoys + LOAD + raw(b"\x80\x02" + EVIL + b".") + b"\x85Rl.")


@case(
    "hostile-loaded-five-deep",
    "torch-zip",
    "hostile",
    "code-execution",
    "a pickle in a pickle in a pickle, five deep",
    target="model.pt",
    blame=["model.pt"],
)
def _(d):
    inner = b"\x80\x02" + EVIL + b"."
    for _ in range(5):
        inner = loading(inner=raw(inner))
    put_pickled(d / "model.pt", inner)


@case(
    "hostile-broken-behind-payload",
    "torch-zip",
    "hostile",
    "code-execution",
    "the structure breaks off behind its payload: a loader has run it by then",
    target="model.pt",
    blame=["posix.system"],
    claims=[("torch", "model.pt", "raises")],
)
def _(d):
    put_pickled(d / "model.pt", b"\x80\x02" + EVIL + b"\xff")


@case(
    "hostile-tensor-without-storage",
    "torch-zip",
    "hostile",
    "code-execution",
    "behind the payload stands a tensor that cannot be",
    target="model.pt",
    blame=["posix.system"],
)
def _(d):
    put_pickled(d / "model.pt", b"\x80\x02(" + EVIL + b"ctorch._utils\n_rebuild_tensor_v2\n(K\x00K\x00)\x89NtRl.")


@case(
    "hostile-lost-record",
    "torch-zip",
    "hostile",
    "code-execution",
    "the header of a storage is damaged, and the structure runs code before anybody asks for it",
    target="model.pt",
    blame=["posix.system"],
)
def _(d):
    path = put_pickled(d / "model.pt", b"\x80\x02" + EVIL + b".")
    data = path.read_bytes()
    at = data.index(b"PK\x03\x04", data.index(b"data/0") - 60)
    path.write_bytes(data[:at] + b"XX" + data[at + 2 :])


@case(
    "hostile-structure-in-capitals",
    "torch-zip",
    "hostile",
    "code-execution",
    "torch finds records whatever their case, so DATA.PKL may be what it loads",
    target="model.pt",
    blame=["DATA.PKL"],
)
def _(d):
    rezip(put_torch(d / "model.pt", weights(3)), extra=[("archive/DATA.PKL", b"\x80\x02" + EVIL + b".")])


@case(
    "hostile-graph-module",
    "torch-zip",
    "hostile",
    "code-execution",
    "a torch.fx module, whose source is compiled and run when it is loaded",
    target="model.pt",
    blame=["reduce_graph_module"],
)
def _(d):
    source = f"import os\nos.system({COMMAND.decode()!r})\ndef forward(self, x):\n    return x\n"
    body = b"}" + text("_code") + text(source) + b"s"
    put_pickled(d / "model.pt", b"\x80\x02ctorch.fx.graph_module\nreduce_graph_module\n" + body + text("") + b"\x86R.")


@case(
    "hostile-getattr-handed-on",
    "torch-zip",
    "hostile",
    "code-execution",
    "a method that getattr finds is called by a rebuild function",
    target="model.pt",
    blame=["model.pt"],
)
def _(d):
    method = b"cbuiltins\ngetattr\ncoptparse\nValues\n" + text("read_file") + b"\x86R"
    put_pickled(d / "model.pt", b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(" + method + b"ctorch\nTensor\n(Nt" + b"NtR.")


@case(
    "hostile-dotted-module",
    "torch-zip",
    "hostile",
    "code-execution",
    "protocol 4: the module is torch, the name hub.load",
    target="model.pt",
    blame=["torch.hub.load"],
)
def _(d):
    put_pickled(d / "model.pt", b"\x80\x04" + text("torch") + text("hub.load") + b"\x93" + text("a/b") + text("c") + b"\x86R.")


@case(
    "hostile-legacy-in-system-information",
    "torch-legacy",
    "hostile",
    "code-execution",
    "the payload is in the third pickle of the old stream, which says what machine wrote it",
    target="old.pth",
    blame=["posix.system"],
)
def _(d):
    good = legacy_bytes({"w": torch.ones(2)})
    info = pickle.dumps({"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}, protocol=2)
    assert good.count(info) == 1
    put(d / "old.pth", good.replace(info, b"\x80\x02}" + text("little_endian") + b"\x88s" + EVIL + b"0."))


@case(
    "hostile-legacy-broken-later",
    "torch-legacy",
    "hostile",
    "code-execution",
    "the old stream breaks off in the pickle behind the one with the payload",
    target="old.pth",
    blame=["posix.system"],
)
def _(d):
    good = legacy_bytes({"w": torch.ones(2), "extra": shell_payload()})
    put(d / "old.pth", good[: good.rindex(b"\x80\x02]") + 3])


@case(
    "hostile-bare-pickle-broken",
    "unknown",
    "hostile",
    "code-execution",
    "a bare pickle that breaks off behind its payload",
    target="model.pt",
    blame=["posix.system"],
)
def _(d):
    put(d / "model.pt", b"\x80\x04" + EVIL + b"\xff")


@case(
    "zip-corrupt-lost-record",
    "torch-zip",
    "corrupt",
    "length-mismatch",
    "the header of one storage is damaged",
    target="model.pt",
    blame=["data/0"],
)
def _(d):
    path = put_torch(d / "model.pt", weights(51))
    data = path.read_bytes()
    at = data.index(b"PK\x03\x04", data.index(b"data/0") - 60)
    path.write_bytes(data[:at] + b"XX" + data[at + 2 :])


@case(
    "zip-ok-loaded-bytes-many",
    "torch-zip",
    "ok",
    "odd-object",
    "a hundred tensors that were pickled and not saved, as bytes of their own",
    target="model.pt",
    also=["warn"],
)
def _(d):
    class Old:
        def __init__(self, tensor):
            self.tensor = tensor

        def __reduce__(self):
            import io

            out = io.BytesIO()
            torch.save(self.tensor, out, _use_new_zipfile_serialization=False)
            return torch.storage._load_from_bytes, (out.getvalue(),)

    put_torch(d / "model.pt", [Old(torch.full((2,), float(n))) for n in range(100)])


@case(
    "zip-ok-odd-keys",
    "torch-zip",
    "ok",
    "odd-names",
    "keys that are half a surrogate pair, very long, and tuples inside of tuples",
    target="model.pt",
    also=["warn"],
)
def _(d):
    key = ("a",)
    for _ in range(2000):
        key = (key,)
    raw_key = b"X\x03\x00\x00\x00\xed\xa0\x80"
    assert pickle.loads(b"\x80\x02" + raw_key + b".") == "\ud800"
    put_torch(d / "model.pt", {"HALF": torch.ones(2), "k" * 70_000: torch.ones(3)})
    rezip(d / "model.pt", lambda n, b: b.replace(b"X\x04\x00\x00\x00HALF", raw_key) if n.endswith("data.pkl") else b)


@case("zip-ok-step-of-minus-one", "torch-zip", "ok", "odd-object", "a step that was never set", target="model.pt", also=["warn"])
def _(d):
    put_torch(d / "model.pt", {"step": -1, "model": weights(52)})


@case(
    "dcp-hostile-payload-before-break",
    "dcp",
    "hostile",
    "code-execution",
    ".metadata breaks off behind its payload",
    blame=["posix.system"],
)
def _(d):
    put_dcp(d, dict(weights(65)), 2)
    put(d / ".metadata", b"\x80\x04" + EVIL + b"\xff")


@case(
    "ranks-hostile-nested-run",
    "rank-shards",
    "hostile",
    "code-execution",
    "one of four ranks has a payload and is cut",
    blame=["rank_00002.pt"],
)
def _(d):
    for rank in range(4):
        put_torch(d / f"rank_{rank:05d}.pt", {"model": weights(rank), "rank": rank, "world_size": 4, "step": 7})
    put_pickled(d / "rank_00002.pt", b"\x80\x02" + EVIL + b"0" + b"\xff")
    assert os.path.getsize(d / "rank_00002.pt")

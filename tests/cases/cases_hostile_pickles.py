"""More hostile pickles. Every payload, if it ran, would only create the marker file."""

import io
import pickle
import struct

import torch

from tests.cases.make_cases import MARKER, Runs, case, legacy_bytes, put, put_st, put_torch, rezip, shell_payload, torch_bytes, weights

COMMAND = f"echo ran > {MARKER}".encode()


def put_pickled(path, raw):
    """A torch zip whose structure record is the bytes given."""
    put_torch(path, {"w": torch.ones(4)})
    rezip(path, lambda n, b: raw if n.endswith("data.pkl") else b)
    return path


def text(value):
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def call(module, name, *args):
    """Opcodes that call a global with texts."""
    return b"\x80\x02c" + f"{module}\n{name}\n".encode() + b"(" + b"".join(text(arg) for arg in args) + b"tR."


@case("hostile-protocol-0", "torch-zip", "hostile", "code-execution", "protocol 0, all in letters", target="model.pt", blame=["model.pt"])
def _(d):
    put_pickled(d / "model.pt", b"cposix\nsystem\n(S'" + COMMAND + b"'\ntR.")


@case(
    "hostile-stack-global",
    "torch-zip",
    "hostile",
    "code-execution",
    "STACK_GLOBAL with its names fetched from the memo",
    target="model.pt",
    blame=["model.pt"],
)
def _(d):
    raw = b"\x80\x04" + text("system") + b"\x94" + text("posix") + b"\x94" + b"h\x01h\x00\x93" + text(COMMAND.decode()) + b"\x85R."
    put_pickled(d / "model.pt", raw)


@case("hostile-inst", "torch-zip", "hostile", "code-execution", "the INST opcode of protocol 0", target="model.pt", blame=["model.pt"])
def _(d):
    put_pickled(d / "model.pt", b"(S'" + COMMAND + b"'\niposix\nsystem\n.")


@case("hostile-obj", "torch-zip", "hostile", "code-execution", "the OBJ opcode", target="model.pt", blame=["model.pt"])
def _(d):
    put_pickled(d / "model.pt", b"(cposix\nsystem\nS'" + COMMAND + b"'\no.")


@case("hostile-newobj-ex", "torch-zip", "hostile", "code-execution", "NEWOBJ_EX on subprocess.Popen", target="model.pt", blame=["Popen"])
def _(d):
    put_pickled(d / "model.pt", b"\x80\x04csubprocess\nPopen\n" + text(COMMAND.decode()) + b"\x85}\x92.")


@case(
    "hostile-thrown-away",
    "torch-zip",
    "hostile",
    "code-execution",
    "the result of the call is thrown away, the object is clean",
    target="model.pt",
    blame=["model.pt"],
)
def _(d):
    clean = pickle.dumps({"a": 1}, protocol=2)
    put_pickled(d / "model.pt", call("posix", "system", COMMAND.decode())[:-1] + b"0" + clean[2:])


@case("hostile-builtins-exec", "torch-zip", "hostile", "code-execution", "builtins.exec", target="model.pt", blame=["exec"])
def _(d):
    put_pickled(d / "model.pt", call("builtins", "exec", f"open('{MARKER}','w')"))


@case(
    "hostile-python-2-builtins",
    "torch-zip",
    "hostile",
    "code-execution",
    "__builtin__.eval, the name of Python 2",
    target="model.pt",
    blame=["eval"],
)
def _(d):
    put_pickled(d / "model.pt", call("__builtin__", "eval", f"open('{MARKER}','w')"))


@case(
    "hostile-getattr-chain",
    "torch-zip",
    "hostile",
    "code-execution",
    "getattr over a harmless class reaches further",
    target="model.pt",
    blame=["getattr"],
)
def _(d):
    put_pickled(d / "model.pt", b"\x80\x02cbuiltins\ngetattr\nccollections\nOrderedDict\n" + text("__class__") + b"\x86R.")


@case(
    "hostile-dotted-name",
    "torch-zip",
    "hostile",
    "code-execution",
    "a dotted name walks from a torch module to os.system",
    target="model.pt",
    blame=["os.system"],
)
def _(d):
    raw = b"\x80\x04" + text("torch.serialization") + text("os.system") + b"\x93" + text(COMMAND.decode()) + b"\x85R."
    put_pickled(d / "model.pt", raw)


@case(
    "hostile-partial",
    "torch-zip",
    "hostile",
    "code-execution",
    "functools.partial around os.system, called",
    target="model.pt",
    blame=["system"],
)
def _(d):
    put_pickled(d / "model.pt", b"\x80\x02cfunctools\npartial\ncposix\nsystem\n" + text(COMMAND.decode()) + b"\x86R)R.")


@case("hostile-runpy", "torch-zip", "hostile", "code-execution", "runpy.run_path", target="model.pt", blame=["runpy"])
def _(d):
    put_pickled(d / "model.pt", call("runpy", "run_path", "x.py"))


@case("hostile-pickle-in-pickle", "torch-zip", "hostile", "code-execution", "pickle.loads of bytes", target="model.pt", blame=["loads"])
def _(d):
    inner = pickle.dumps(shell_payload(), protocol=2)
    put_pickled(d / "model.pt", b"\x80\x03c_pickle\nloads\nB" + struct.pack("<I", len(inner)) + inner + b"\x85R.")


@case(
    "hostile-in-loaded-bytes",
    "torch-zip",
    "hostile",
    "code-execution",
    "an old stream inside of torch.storage._load_from_bytes",
    target="model.pt",
    blame=["system"],
)
def _(d):
    put_torch(d / "model.pt", {"w": torch.ones(4), "extra": _Bytes(legacy_bytes({"x": shell_payload()}))})


@case(
    "hostile-in-loaded-zip",
    "torch-zip",
    "hostile",
    "code-execution",
    "a torch zip inside of torch.storage._load_from_bytes",
    target="model.pt",
    blame=["system"],
)
def _(d):
    put_torch(d / "model.pt", {"w": torch.ones(4), "extra": _Bytes(torch_bytes({"x": shell_payload()}))})


@case(
    "hostile-bytes-object-in-protocol-5",
    "torch-zip",
    "hostile",
    "code-execution",
    "an io.BytesIO with a torch zip, as layers keep their extra state, in protocol 5",
    target="model.pt",
    blame=["system"],
)
def _(d):
    put_torch(d / "model.pt", {"w": torch.ones(4), "a._extra_state": io.BytesIO(torch_bytes({"x": shell_payload()}))}, pickle_protocol=5)


@case(
    "zip-ok-extra-state",
    "torch-zip",
    "ok",
    "odd-object",
    "an io.BytesIO with a sound torch zip, as layers keep their extra state",
    target="model.pt",
    also=["warn"],
)
def _(d):
    put_torch(d / "model.pt", {"w": torch.ones(4), "a._extra_state": io.BytesIO(torch_bytes({"scale": torch.ones(2)}))})


class _Bytes:
    def __init__(self, raw):
        self.raw = raw

    def __reduce__(self):
        return torch.storage._load_from_bytes, (self.raw,)


@case(
    "hostile-extra-state",
    "torch-zip",
    "hostile",
    "code-execution",
    "bytes that a layer unpickles itself when it loads",
    target="model.pt",
    blame=["system"],
)
def _(d):
    put_torch(d / "model.pt", {"w": torch.ones(4), "fp8._extra_state": pickle.dumps(shell_payload(), protocol=4)})


@case(
    "hostile-torch-load",
    "torch-zip",
    "hostile",
    "code-execution",
    "torch.load of another file, without the guard",
    target="model.pt",
    blame=["torch.load"],
)
def _(d):
    put_pickled(d / "model.pt", call("torch", "load", "other.pt"))


@case(
    "hostile-hub",
    "torch-zip",
    "hostile",
    "code-execution",
    "torch.hub.load runs a repository's code",
    target="model.pt",
    blame=["torch.hub"],
)
def _(d):
    put_pickled(d / "model.pt", call("torch.hub", "load", "someone/repo", "model"))


@case(
    "hostile-build-on-module",
    "torch-zip",
    "hostile",
    "code-execution",
    "BUILD sets attributes of a global itself",
    target="model.pt",
    blame=["model.pt"],
)
def _(d):
    put_pickled(d / "model.pt", b"\x80\x02ccollections\nOrderedDict\n}" + text("clear") + b"Nsb.")


@case(
    "hostile-items-into-tensor",
    "torch-zip",
    "hostile",
    "code-execution",
    "items are set on a rebuilt tensor (CVE-2026-24747)",
    target="model.pt",
    blame=["_rebuild_tensor_v2"],
)
def _(d):
    p = put_torch(d / "model.pt", torch.ones(4))
    rezip(p, lambda n, b: b[:-1] + b"K\x00K\x01s." if n.endswith("data.pkl") else b)


@case("hostile-laughs", "torch-zip", "hostile", "memory", "sixty doublings: a tree of 2**60 leaves", target="model.pt", blame=["model.pt"])
def _(d):
    raw = b"\x80\x02]q\x00K\x01a"
    for n in range(60):
        raw += b"0]q" + bytes([n + 1]) + b"(h" + bytes([n]) + b"h" + bytes([n]) + b"e"
    put_pickled(d / "model.pt", raw + b".")


@case(
    "hostile-memo-index",
    "torch-zip",
    "hostile",
    "memory",
    "a memo index of 2**32 - 1 makes the reader allocate 64 GB",
    target="model.pt",
    blame=["model.pt"],
)
def _(d):
    put_pickled(d / "model.pt", b"\x80\x02Nr\xff\xff\xff\xff.")


@case(
    "hostile-bytearray-length",
    "torch-zip",
    "hostile",
    "huge-length",
    "BYTEARRAY8 of 2**50 bytes",
    target="model.pt",
    blame=["model.pt"],
    also=["corrupt"],
)
def _(d):
    put_pickled(d / "model.pt", b"\x80\x05\x96" + struct.pack("<Q", 1 << 50) + b"abc.")


@case(
    "hostile-unicode-length",
    "torch-zip",
    "hostile",
    "huge-length",
    "BINUNICODE8 of 2**62 bytes",
    target="model.pt",
    blame=["model.pt"],
    also=["corrupt"],
)
def _(d):
    put_pickled(d / "model.pt", b"\x80\x04\x8d" + struct.pack("<Q", 1 << 62) + b"abc.")


@case("hostile-bytearray-call", "torch-zip", "hostile", "memory", "bytearray(10**13)", target="model.pt", blame=["bytearray"])
def _(d):
    put_pickled(d / "model.pt", b"\x80\x02cbuiltins\nbytearray\n\x8a\x06" + (10**13).to_bytes(6, "little") + b"\x85R.")


@case("hostile-list-of-range", "torch-zip", "hostile", "memory", "list(range(10**13))", target="model.pt", blame=["list"])
def _(d):
    put_pickled(d / "model.pt", b"\x80\x02cbuiltins\nlist\ncbuiltins\nrange\n\x8a\x06" + (10**13).to_bytes(6, "little") + b"\x85R\x85R.")


@case(
    "hostile-legacy-memo",
    "torch-legacy",
    "hostile",
    "code-execution",
    "the old stream, STACK_GLOBAL in its object",
    target="old.pth",
    blame=["old.pth"],
)
def _(d):
    raw = legacy_bytes({"w": torch.ones(2), "x": Runs(eval, f"open('{MARKER}','w')")})
    put(d / "old.pth", raw)


@case(
    "hostile-legacy-second-stream",
    "torch-legacy",
    "hostile",
    "code-execution",
    "the payload is in a second object behind the first",
    target="old.pth",
    blame=["old.pth"],
)
def _(d):
    put(d / "old.pth", legacy_bytes(weights(610)) + legacy_bytes({"x": shell_payload()}))


@case(
    "hostile-bare-pickle",
    "unknown",
    "hostile",
    "code-execution",
    "no container, and torch.load would unpickle it all the same",
    target="model.pt",
    blame=["system"],
)
def _(d):
    put(d / "model.pt", pickle.dumps(shell_payload(), protocol=4))


@case(
    "hostile-bare-pickle-protocol-0", "unknown", "hostile", "code-execution", "the same in protocol 0", target="state.pkl", blame=["system"]
)
def _(d):
    put(d / "state.pkl", b"cposix\nsystem\n(S'" + COMMAND + b"'\ntR.")


@case(
    "hostile-torchscript-constants",
    "torch-zip",
    "hostile",
    "code-execution",
    "constants.pkl of a TorchScript archive",
    target="model.pt",
    blame=["constants.pkl"],
)
def _(d):
    out = io.BytesIO()
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), out)
    p = put(d / "model.pt", out.getvalue())
    rezip(p, lambda n, b: pickle.dumps(shell_payload(), protocol=2) if n.endswith("constants.pkl") else b)


@case(
    "hostile-beside-weights",
    "safetensors",
    "hostile",
    "code-execution",
    "safe weights, and a hostile .bin beside them",
    blame=["pytorch_model.bin"],
)
def _(d):
    put_st(d / "model.safetensors", dict(weights(611, rows=128)))
    put_torch(d / "pytorch_model.bin", {"x": shell_payload()})


@case(
    "hostile-opaque-with-torch-file",
    "torch-zip",
    "hostile",
    "code-execution",
    "a marked folder with a hostile torch file",
    blame=["state.pt"],
)
def _(d):
    put(d / "_COMMITTED", b"")
    put(d / "state.pt", torch_bytes({"x": shell_payload()}))

"""More torch zip files that are good and odd, and values that are not finite."""

import collections
import dataclasses
import pathlib
import random
import zipfile

import numpy as np
import torch

from tests.cases.make_cases import (
    adam_state,
    case,
    drop_modules,
    foreign,
    put_torch,
    rezip,
    torch_bytes,
    weights,
)


def zip_case(name, verdict, kind, why, **more):
    more.setdefault("target", "model.pt")
    if verdict in ("corrupt", "hostile"):
        more.setdefault("blame", ["model.pt"])
    return case(name, "torch-zip", verdict, kind, why, **more)


# ===== good, and odd


@zip_case("zip-ok-unsigned-integers", "ok", "odd-dtype", "uint16, uint32, uint64 and complex tensors of three widths")
def _(d):
    kinds = (
        torch.uint16,
        torch.uint32,
        torch.uint64,
        torch.complex32,
        torch.complex64,
        torch.complex128,
        torch.int8,
        torch.int16,
        torch.float64,
    )
    put_torch(d / "model.pt", {str(kind): torch.ones(3).to(kind) for kind in kinds})


@zip_case("zip-ok-float8-all", "ok", "odd-dtype", "every 8-bit float, and pairs of 4-bit floats")
def _(d):
    kinds = (torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz, torch.float8_e8m0fnu)
    sd = {str(kind): torch.ones(4).to(kind) for kind in kinds}
    sd["four"] = torch.arange(8, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    put_torch(d / "model.pt", sd)


@zip_case("zip-ok-quantised", "ok", "odd-dtype", "tensors quantised as a whole and by channel")
def _(d):
    w = weights(101)["embed.weight"]
    put_torch(
        d / "model.pt",
        {
            "whole": torch.quantize_per_tensor(w, 0.1, 0, torch.qint8),
            "channel": torch.quantize_per_channel(w, torch.ones(32) * 0.1, torch.zeros(32), 0, torch.quint8),
        },
    )


@zip_case("zip-ok-sparse-coo-csr", "ok", "odd-object", "sparse tensors of two layouts")
def _(d):
    w = torch.eye(8)
    put_torch(d / "model.pt", {"coo": w.to_sparse(), "csr": w.to_sparse_csr(), "dense": w})


@zip_case("zip-ok-nested-tensor", "ok", "odd-object", "a nested tensor of rows of different lengths")
def _(d):
    put_torch(d / "model.pt", {"ragged": torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])})


@zip_case("zip-ok-views-transposed-expanded", "ok", "shared-storage", "transposed, expanded, strided and empty views of one storage")
def _(d):
    w = weights(102)["embed.weight"]
    put_torch(d / "model.pt", {"w": w, "t": w.t(), "e": w[:1].expand(5, 16), "s": w[::2, 1::3], "n": w[:0], "z": w[3, 4]})


@zip_case("zip-ok-whole-module", "ok", "odd-object", "a whole nn.Module was saved, with its classes by name", also=["warn"])
def _(d):
    put_torch(d / "model.pt", torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.LayerNorm(4)))


@zip_case("zip-ok-torchscript", "ok", "odd-container", "a TorchScript archive, which shares the container", also=["warn"])
def _(d):
    torch.jit.save(torch.jit.script(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())), str(d / "model.pt"))


@zip_case("zip-ok-protocol-4", "ok", "odd-container", "pickled with protocol 4, which the safe loader refuses")
def _(d):
    put_torch(d / "model.pt", weights(103), pickle_protocol=4)


@zip_case("zip-ok-protocol-5", "ok", "odd-container", "pickled with protocol 5")
def _(d):
    put_torch(d / "model.pt", weights(103), pickle_protocol=5)


@zip_case("zip-ok-deflated", "ok", "odd-container", "packed again with compression by a tool: loaders read it", also=["warn"])
def _(d):
    sd = weights(104)
    sd["zeros"] = torch.zeros(20_000)
    p = put_torch(d / "model.pt", sd)
    rezip(p, compression=zipfile.ZIP_DEFLATED)


@zip_case(
    "zip-ok-lightning",
    "ok",
    "foreign-class",
    "a Lightning checkpoint: hyper-parameters, callbacks, loops, paths",
    target="epoch=1-step=40.ckpt",
    also=["warn"],
)
def _(d):
    obj, made = foreign("lightning.fabric.utilities.data", "AttributeDict", lr=0.1)
    put_torch(
        d / "epoch=1-step=40.ckpt",
        {
            "epoch": 1,
            "global_step": 40,
            "pytorch-lightning_version": "2.6.6",
            "state_dict": weights(105),
            "loops": {"fit_loop": {"state_dict": {}}},
            "callbacks": {"ModelCheckpoint{'monitor': None}": {"dirpath": pathlib.PurePosixPath("a/b"), "best_k_models": {}}},
            "optimizer_states": [adam_state(weights(105).values(), 40)],
            "lr_schedulers": [],
            "hyper_parameters": obj,
        },
    )
    drop_modules(made)


@zip_case("zip-ok-plain-python", "ok", "odd-object", "no tensors: numbers, text, bytes, sets, slices, complex, large integers")
def _(d):
    put_torch(
        d / "model.pt",
        {
            "big": 1 << 300,
            "neg": -(1 << 70),
            "set": {1, 2},
            "frozen": frozenset({"a"}),
            "bytes": b"\x00" * 40,
            "array": bytearray(b"abc"),
            "complex": 1j,
            "slice": slice(1, 2),
            "counter": collections.Counter("aab"),
            "default": collections.defaultdict(list, {"k": [1]}),
            "text": "ü\n\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
        },
    )


@zip_case("zip-ok-deep-nesting", "ok", "odd-object", "dictionaries forty deep around one tensor")
def _(d):
    obj = torch.ones(2)
    for level in range(40):
        obj = {f"level{level}": obj}
    put_torch(d / "model.pt", obj)


@zip_case("zip-ok-cycle", "ok", "odd-object", "a dictionary that contains itself", also=["warn"])
def _(d):
    obj = {"w": torch.ones(2)}
    obj["self"] = obj
    put_torch(d / "model.pt", obj)


@zip_case("zip-ok-causal-mask", "ok", "non-finite", "a causal mask of zeros and minus infinities is kept as a buffer", also=["warn"])
def _(d):
    put_torch(d / "model.pt", {**weights(106), "attn.mask": torch.full((32, 32), float("-inf")).triu(1)})


@zip_case("zip-ok-name-with-newline", "ok", "odd-names", "names with newline, slash, tab, quotes and emptiness")
def _(d):
    put_torch(
        d / "model.pt", {"a\nb": torch.ones(1), "c/d": torch.ones(1), '"quoted"': torch.ones(1), "": torch.ones(1), "t\tb": torch.ones(1)}
    )


@zip_case("zip-ok-integer-keys", "ok", "odd-names", "keys are numbers and tuples")
def _(d):
    put_torch(d / "model.pt", {0: torch.ones(1), (1, "a"): torch.ones(2), None: torch.ones(3), 2.5: torch.ones(1)})


@zip_case(
    "zip-ok-random-states", "ok", "foreign-class", "random states of Python, numpy and torch, with numpy scalars and arrays", also=["warn"]
)
def _(d):
    put_torch(
        d / "model.pt",
        {
            "python": random.Random(3).getstate(),
            "numpy": np.random.RandomState(3).get_state(),
            "generator": np.random.default_rng(3).bit_generator.state,
            "torch": torch.Generator().manual_seed(3).get_state(),
            "loss": np.float64(2.5),
            "ids": np.arange(5, dtype=np.int32),
            "objects": np.array([{"a": 1}, None], dtype=object),
        },
    )


@zip_case("zip-ok-parameter-with-state", "ok", "odd-object", "a parameter that carries attributes, and a tensor subclass")
def _(d):
    p = torch.nn.Parameter(torch.ones(3))
    p.note = "shared"
    put_torch(d / "model.pt", {"p": p, "b": torch.nn.Buffer(torch.ones(2))})


@zip_case("zip-ok-meta-tensor", "ok", "odd-object", "a tensor without bytes, as saved from a model on the meta device", also=["warn"])
def _(d):
    put_torch(d / "model.pt", {"w": torch.ones(2), "m": torch.ones(3, 4, device="meta")})


@zip_case("zip-ok-bare-storage", "ok", "odd-object", "a storage instead of a tensor")
def _(d):
    put_torch(d / "model.pt", {"s": torch.ones(4).untyped_storage(), "w": torch.ones(4)})


@zip_case("zip-ok-bare-tensor", "ok", "plain", "the file holds one tensor and nothing around it")
def _(d):
    put_torch(d / "model.pt", weights(107)["embed.weight"])


@zip_case("zip-ok-other-extension", "ok", "odd-names", "the file has an ending that no framework uses", target="weights.dat")
def _(d):
    put_torch(d / "weights.dat", weights(108))


@zip_case("zip-ok-named-tar", "ok", "odd-names", "a torch zip under the old habit of calling it .pth.tar", target="model_best.pth.tar")
def _(d):
    put_torch(d / "model_best.pth.tar", {"epoch": 3, "state_dict": weights(109)})


@dataclasses.dataclass
class GPTConfig:
    """Stands in for a class of the training script."""

    layers: int = 2


@zip_case("zip-ok-config-of-script", "ok", "foreign-class", "a configuration class of the training script itself (__main__)", also=["warn"])
def _(d):
    GPTConfig.__module__ = "__main__"
    import sys

    before = getattr(sys.modules["__main__"], "GPTConfig", None)
    sys.modules["__main__"].GPTConfig = GPTConfig
    try:
        put_torch(d / "model.pt", {"model": weights(110), "config": GPTConfig()})
    finally:
        if before is None:
            del sys.modules["__main__"].GPTConfig


@zip_case("zip-warn-unknown-class", "warn", "foreign-class", "a class that nobody listed: a reason to look", blame=["acme.trainer.State"])
def _(d):
    obj, made = foreign("acme.trainer", "State", step=3)
    put_torch(d / "model.pt", {"w": torch.ones(4), "state": obj})
    drop_modules(made)


@zip_case(
    "zip-ok-loaded-bytes",
    "ok",
    "foreign-class",
    "a storage pickled by pickle itself goes through torch.storage._load_from_bytes",
    also=["warn"],
)
def _(d):
    put_torch(d / "model.pt", {"w": torch.ones(4), "extra": _ByBytes(torch_bytes(torch.ones(2), _use_new_zipfile_serialization=False))})


class _ByBytes:
    def __init__(self, raw):
        self.raw = raw

    def __reduce__(self):
        return torch.storage._load_from_bytes, (self.raw,)


# ===== values


@zip_case("zip-warn-inf-in-bf16", "warn", "non-finite", "one bf16 weight is infinite", blame=["layers.0.weight"], also=["corrupt"])
def _(d):
    sd = weights(111, dtype=torch.bfloat16)
    sd["layers.0.weight"][0, 0] = float("inf")
    put_torch(d / "model.pt", sd)


@zip_case("zip-warn-nan-in-fp8", "warn", "non-finite", "an 8-bit weight is NaN", blame=["w8"], also=["corrupt"])
def _(d):
    w = torch.ones(8)
    w[5] = float("nan")
    put_torch(d / "model.pt", {"w8": w.to(torch.float8_e4m3fn), "ok": torch.ones(3)})


@zip_case(
    "zip-warn-nan-in-optimizer", "warn", "non-finite", "the second moment of one parameter is NaN", blame=["exp_avg_sq"], also=["corrupt"]
)
def _(d):
    state = adam_state(weights(112).values(), 10)
    state["state"][1]["exp_avg_sq"][0] = float("nan")
    put_torch(d / "model.pt", {"model": weights(112), "optimizer": state})


@zip_case("zip-warn-nan-transposed", "warn", "non-finite", "the NaN is in a view that is not contiguous", blame=["t"], also=["corrupt"])
def _(d):
    w = torch.ones(4, 6)
    w[2, 2] = float("nan")
    put_torch(d / "model.pt", {"t": w.t()})


@zip_case("zip-warn-nan-complex", "warn", "non-finite", "the imaginary part of one number is NaN", blame=["c"], also=["corrupt"])
def _(d):
    put_torch(d / "model.pt", {"c": torch.complex(torch.ones(3), torch.tensor([1.0, float("nan"), 0.0]))})

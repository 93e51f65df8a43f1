"""Checkpoint cases: broken, odd and hostile checkpoints, each with its verdict.

    python make_cases.py OUTDIR

writes OUTDIR/<case-name>/... and OUTDIR/cases.json. Everything is tiny and deterministic. Needs torch, numpy and safetensors; no GPU and no
network. What reads the cases needs none of them.

Verdicts, worst first (a checkpoint gets the worst that applies):

  hostile     reading it the usual way would run code, leave the directory or exhaust memory
  corrupt     a file that is there cannot be read back whole, or contradicts another one
  incomplete  something that an index, a tag, a tracker or a world size names is not there
  warn        restorable, and a person should know something about it
  ok          restorable, however odd it looks

A case has: name, layout, expected, also (other verdicts that are fair), kind (what is tested), why, target (the path in the case to
point the inspection at), blame (file or tensor names that a good message mentions), claims (what stock loaders do with it, as
[probe, path, outcome]: torch is torch.load(weights_only=True), torch-any is weights_only=False, st is safetensors, dcp is
torch.distributed.checkpoint.load, crc is zipfile's testzip, json is json.load), fingerprint (SHA-256 over names and contents of the case).

Hostile payloads only ever create a file called PAYLOAD_RAN.marker in the working directory. The folder _outside next to the cases is bait
for links and paths that leave a case.
"""

import argparse
import collections
import hashlib
import io
import json
import os
import pickle
import random
import shutil
import struct
import sys
import types
import zipfile
import zlib
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save as st_bytes
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)

MARKER = "PAYLOAD_RAN.marker"  # appears in the working directory only if a payload executed
OUTSIDE = "_outside"  # sibling of the cases: bait for links and paths that leave a case
SIZE_LIMIT = 200_000

CASES = []


def case(name, layout, expected, kind, why, target=".", blame=(), also=(), claims=()):
    """Register a builder. The builder gets the empty directory of its case."""

    def register(build):
        CASES.append(
            {
                "name": name,
                "layout": layout,
                "expected": expected,
                "also": list(also),
                "kind": kind,
                "why": why,
                "target": target,
                "blame": list(blame),
                "claims": [list(c) for c in claims],
                "_build": build,
            }
        )
        return build

    return register


# --------------------------------------------------------------------------- bytes


def put(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def put_json(path, obj):
    return put(path, json.dumps(obj, indent=1, sort_keys=True, ensure_ascii=False))


def put_sparse(path, data, block=4096):
    """Write data, leaving every all-zero block as a hole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as f:
        for at in range(0, len(data), block):
            piece = data[at : at + block]
            if piece.strip(b"\0"):
                f.seek(at)
                f.write(piece)
        f.truncate(len(data))
    return path


def cut(path, keep):
    """Keep a fraction (float) or all but some bytes (negative int) of a file."""
    data = path.read_bytes()
    end = int(len(data) * keep) if isinstance(keep, float) else keep
    path.write_bytes(data[:end])


def flip(path, at, mask=0x40):
    data = bytearray(path.read_bytes())
    data[at] ^= mask
    path.write_bytes(bytes(data))


def zero(path, start, length):
    data = bytearray(path.read_bytes())
    data[start : start + length] = bytes(length)
    path.write_bytes(bytes(data))


# --------------------------------------------------------------------------- torch files


def torch_bytes(obj, **kw):
    buf = io.BytesIO()
    torch.save(obj, buf, **kw)
    return buf.getvalue()


def put_torch(path, obj, **kw):
    return put(path, torch_bytes(obj, **kw))


class _OldPickler(pickle.Pickler):
    """Numbers storages in the order met, so that the bytes do not depend on addresses."""

    def __init__(self, out):
        super().__init__(out, protocol=2)
        self.storages = []

    def persistent_id(self, obj):
        if not isinstance(obj, torch.storage.TypedStorage):
            return None
        raw = obj._untyped_storage
        for key, (known, _) in enumerate(self.storages):  # noqa: B007  # used after the loop
            if known.data_ptr() == raw.data_ptr():
                break
        else:
            key = len(self.storages)
            self.storages.append((raw, obj._size()))
        kind = getattr(torch, obj._pickle_storage_type())
        return ("storage", kind, str(key), "cpu", obj._size(), None)


def legacy_bytes(obj):
    """The container that torch.save wrote before it used zip files."""
    out = io.BytesIO()
    sizes = {"short": 2, "int": 4, "long": 4}
    info = {"protocol_version": 1001, "little_endian": True, "type_sizes": sizes}
    for head in (0x1950A86A20F9469CFC6C, 1001, info):
        pickle.dump(head, out, protocol=2)
    pickler = _OldPickler(out)
    pickler.dump(obj)
    pickle.dump([str(n) for n in range(len(pickler.storages))], out, protocol=2)
    for raw, numel in pickler.storages:
        out.write(struct.pack("<q", numel))
        out.write(torch.empty(0, dtype=torch.uint8).set_(raw).numpy().tobytes())
    return out.getvalue()


def put_legacy(path, obj):
    return put(path, legacy_bytes(obj))


def record_span(path, suffix):
    """(start, length) of the stored bytes of the zip record whose name ends so."""
    with zipfile.ZipFile(path) as z:
        info = next(i for i in z.infolist() if i.filename.endswith(suffix))
    raw = path.read_bytes()
    name_len, extra_len = struct.unpack_from("<HH", raw, info.header_offset + 26)
    return info.header_offset + 30 + name_len + extra_len, info.compress_size


def rezip(path, change=None, compression=zipfile.ZIP_STORED, extra=()):
    """Rewrite a zip; change(name, data) may return new data, or None to drop it."""
    out = io.BytesIO()
    with zipfile.ZipFile(path) as src, zipfile.ZipFile(out, "w", compression) as dst:
        for info in src.infolist():
            data = src.read(info)
            if change is not None:
                data = change(info.filename, data)
            if data is not None:
                stamp = zipfile.ZipInfo(info.filename, (1980, 1, 1, 0, 0, 0))
                dst.writestr(stamp, data, compress_type=compression)
        for name, data in extra:
            stamp = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            dst.writestr(stamp, data, compress_type=compression)
    path.write_bytes(out.getvalue())


def foreign(module, name, **attrs):
    """An object whose pickle names a class that is not installed where it is read."""
    parts = module.split(".")
    made = []
    for n in range(1, len(parts) + 1):
        dotted = ".".join(parts[:n])
        if dotted not in sys.modules:
            sys.modules[dotted] = types.ModuleType(dotted)
            made.append(dotted)
    cls = type(name, (), {"__module__": module})
    setattr(sys.modules[module], name, cls)
    obj = cls()
    obj.__dict__.update(attrs)
    return obj, made


def drop_modules(names):
    for n in names:
        sys.modules.pop(n, None)


class Runs:
    """Pickles to a call of func(*args). Building the file never calls it."""

    def __init__(self, func, *args):
        self.call = (func, args)

    def __reduce__(self):
        return self.call


def shell_payload():
    return Runs(os.system, f"echo ran > {MARKER}")


def weights(seed, rows=32, cols=16, layers=2, dtype=torch.float32, prefix=""):
    g = torch.Generator().manual_seed(seed)
    sd = collections.OrderedDict()
    sd[f"{prefix}embed.weight"] = torch.randn(rows, cols, generator=g).to(dtype)
    for n in range(layers):
        sd[f"{prefix}layers.{n}.weight"] = torch.randn(cols, cols, generator=g).to(dtype)
        sd[f"{prefix}layers.{n}.bias"] = torch.randn(cols, generator=g).to(dtype)
    return sd


def adam_state(params, step, lr=1e-3):
    state = {}
    for n, p in enumerate(params):
        p = p.float()
        state[n] = {
            "step": torch.tensor(float(step)),
            "exp_avg": p * 0.01,
            "exp_avg_sq": p.square() * 0.001,
        }
    group = {"lr": lr, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1, "params": list(state)}
    return {"state": state, "param_groups": [group]}


# --------------------------------------------------------------------------- safetensors


def put_st(path, tensors, metadata=None):
    return put(path, st_bytes(tensors, metadata))


def st_raw(header, body=b"", length=None):
    """A hand-made safetensors file: header may be a dict or raw bytes."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    size = len(text) if length is None else length
    return struct.pack("<Q", size) + text + body


def put_st_shards(root, shards, stem="model", total=None, index_extra=None, skip=()):
    """Sharded safetensors with an index. shards: list of dicts of tensors."""
    total = total or len(shards)
    names = [f"{stem}-{n + 1:05d}-of-{total:05d}.safetensors" for n in range(total)]
    weight_map, size = {}, 0
    for name, tensors in zip(names, shards, strict=False):
        for key, t in tensors.items():
            weight_map[key] = name
            size += t.numel() * t.element_size()
        if name not in skip:
            put_st(root / name, tensors, {"format": "pt"})
    weight_map.update(index_extra or {})
    put_json(
        root / f"{stem}.safetensors.index.json",
        {"metadata": {"total_size": size}, "weight_map": weight_map},
    )
    return names


def split(sd, parts):
    items = list(sd.items())
    step = -(-len(items) // parts)
    return [dict(items[i : i + step]) for i in range(0, len(items), step)]


# --------------------------------------------------------------------------- DCP


def put_dcp(root, tensors, ranks, objects=None, edit=None, meta=".metadata"):
    """A distributed checkpoint directory: each tensor is split by rows over ranks."""
    root.mkdir(parents=True, exist_ok=True)
    files = [io.BytesIO() for _ in range(ranks)]
    entries, storage = {}, {}

    def append(rank, data):
        at = files[rank].tell()
        files[rank].write(data)
        return _StorageInfo(f"__{rank}_0.distcp", at, len(data))

    for fqn, full in tensors.items():
        chunks = []
        rows = full.shape[0] if full.dim() else 0
        parts = min(ranks, rows) if rows else 1
        bounds = [rows * r // parts for r in range(parts + 1)]
        for r in range(parts):
            piece = full[bounds[r] : bounds[r + 1]].clone() if rows else full.clone()
            offset = torch.Size([bounds[r]] + [0] * (full.dim() - 1)) if full.dim() else torch.Size([])
            chunks.append(ChunkStorageMetadata(offsets=offset, sizes=piece.size()))
            storage[MetadataIndex(fqn, offset, r)] = append(r, torch_bytes(piece))
        entries[fqn] = TensorStorageMetadata(properties=TensorProperties(dtype=full.dtype), size=full.size(), chunks=chunks)
    for fqn, obj in (objects or {}).items():
        entries[fqn] = BytesStorageMetadata()
        storage[MetadataIndex(fqn)] = append(0, torch_bytes(obj))
    md = Metadata(
        state_dict_metadata=entries,
        planner_data={fqn: tuple(fqn.split(".")) for fqn in entries},
        storage_data=storage,
    )
    for r, f in enumerate(files):
        put(root / f"__{r}_0.distcp", f.getvalue())
    if edit is not None:
        edit(md)
    if meta:
        put(root / meta, pickle.dumps(md))
    return md


# --------------------------------------------------------------------------- framework folders


def put_hf(ckpt, seed, step, opaque_args=True, ranks=1):
    """A Trainer-style checkpoint-N folder."""
    sd = weights(seed)
    put_st(ckpt / "model.safetensors", dict(sd), {"format": "pt"})
    put_json(ckpt / "config.json", {"model_type": "toy", "hidden_size": 16, "torch_dtype": "float32"})
    put_torch(ckpt / "optimizer.pt", adam_state(sd.values(), step))
    put_torch(ckpt / "scheduler.pt", {"base_lrs": [1e-3], "last_epoch": step, "_step_count": step + 1})
    for r in range(ranks):
        rng = {
            "python": random.Random(seed + r).getstate(),
            "numpy": np.random.RandomState(seed + r).get_state(),
            "cpu": torch.Generator().manual_seed(seed + r).get_state(),
        }
        put_torch(ckpt / ("rng_state.pth" if ranks == 1 else f"rng_state_{r}.pth"), rng)
    put_json(
        ckpt / "trainer_state.json",
        {
            "global_step": step,
            "epoch": 0.5,
            "max_steps": step * 10,
            "best_metric": None,
            "best_model_checkpoint": None,
            "log_history": [{"step": step, "loss": 2.25, "learning_rate": 1e-3}],
        },
    )
    if opaque_args:
        args, made = foreign("transformers.training_args", "TrainingArguments", output_dir="out", seed=seed)
        put_torch(ckpt / "training_args.bin", args)
        drop_modules(made)


def put_deepspeed(root, seed, step, ranks=2, prefix="", stage=2, latest=True, scaler=False):
    """A ZeRO stage 1/2 run folder: latest file, tag folder, recovery script."""
    tag = f"global_step{step}"
    sd = weights(seed, dtype=torch.bfloat16)
    shapes = collections.OrderedDict((k, v.shape) for k, v in sd.items())
    config = {"zero_optimization": {"stage": stage}, "bf16": {"enabled": True}}
    put_torch(
        root / tag / "mp_rank_00_model_states.pt",
        {
            "module": sd,
            "buffer_names": [],
            "param_shapes": [shapes],
            "dp_world_size": ranks,
            "mp_world_size": 1,
            "global_steps": step,
            "ds_config": config,
            "ds_version": "0.17.0",
        },
    )
    flat = torch.cat([t.float().reshape(-1) for t in sd.values()])
    flat = torch.nn.functional.pad(flat, (0, -flat.numel() % ranks))
    for r, part in enumerate(flat.chunk(ranks)):
        inner = {
            "zero_stage": stage,
            "partition_count": ranks,
            "single_partition_of_fp32_groups": [part.clone()],
            "base_optimizer_state": {"state": {0: {"step": step, "exp_avg": part * 0.01}}},
        }
        if scaler:
            obj, made = foreign("deepspeed.runtime.fp16.loss_scaler", "LossScaler", cur_scale=1.0, dynamic=False)
            inner["loss_scaler"] = obj
        put_torch(
            root / tag / f"{prefix}zero_pp_rank_{r}_mp_rank_00_optim_states.pt",
            {"optimizer_state_dict": inner, "ds_config": config, "ds_version": "0.17.0"},
        )
        if scaler:
            drop_modules(made)
    put(root / "zero_to_fp32.py", "# stand-in for the recovery script that is copied next to a checkpoint\n")
    if latest:
        put(root / "latest", tag)
    return root / tag


def put_megatron(root, seed, iteration, tp=1, name=None, tracker=None):
    """A legacy (non-distributed) Megatron run folder."""
    folder = root / (name or f"iter_{iteration:07d}")
    for r in range(tp):
        args = argparse.Namespace(tensor_model_parallel_size=tp, pipeline_model_parallel_size=1, num_layers=2, seed=seed)
        put_torch(
            folder / f"mp_rank_{r:02d}" / "model_optim_rng.pt",
            {
                "args": args,
                "checkpoint_version": 3.0,
                "iteration": iteration,
                "model": weights(seed + r),
                "optimizer": adam_state(weights(seed + r).values(), iteration),
                "rng_state": [{"torch_rng_state": torch.Generator().manual_seed(seed).get_state()}],
            },
        )
    put(root / "latest_checkpointed_iteration.txt", str(iteration) if tracker is None else tracker)
    return folder


def put_megatron_dist(root, seed, iteration, ranks=2, **kw):
    """A torch_dist Megatron run folder."""
    folder = root / f"iter_{iteration:07d}"
    tensors = {f"model.{k}": v for k, v in weights(seed).items()}
    put_dcp(folder, tensors, ranks, **kw)
    put_torch(
        folder / "common.pt",
        {"args": argparse.Namespace(tensor_model_parallel_size=1, seed=seed), "iteration": iteration},
    )
    put_json(
        folder / "metadata.json",
        {
            "sharded_backend": "torch_dist",
            "sharded_backend_version": 1,
            "common_backend": "torch",
            "common_backend_version": 1,
        },
    )
    put(root / "latest_checkpointed_iteration.txt", str(iteration))
    return folder


def rank_payload(seed, rank, world, step, run="run-a", **kw):
    return {
        "model": weights(seed + rank, **kw),
        "rank": rank,
        "world_size": world,
        "step": step,
        "run_id": run,
    }


def put_ranks(root, seed, world, step, skip=(), **kw):
    for r in range(world):
        if r not in skip:
            put_torch(root / f"rank_{r:05d}.pt", rank_payload(seed, r, world, step, **kw))


# --------------------------------------------------------------------------- cases

# ===== torch.save, zip container


@case(
    "zip-ok-mixed-dtypes",
    "torch-zip",
    "ok",
    "odd-dtype",
    "fp32, bf16, fp16, int64, bool and a zero-dim tensor side by side",
    target="model.pt",
    claims=[("torch", "model.pt", "loads"), ("crc", "model.pt", "good")],
)
def _(d):
    sd = weights(1)
    sd["half"] = torch.ones(4, dtype=torch.float16)
    sd["brain"] = torch.full((4, 4), 1.5, dtype=torch.bfloat16)
    sd["ids"] = torch.arange(6)
    sd["mask"] = torch.tensor([True, False])
    sd["scale"] = torch.tensor(3.0)
    put_torch(d / "model.pt", sd)


@case(
    "zip-ok-empty-state-dict",
    "torch-zip",
    "ok",
    "empty",
    "a state_dict with no entries is still a valid file",
    target="empty.pth",
    also=["warn"],
    claims=[("torch", "empty.pth", "loads")],
)
def _(d):
    put_torch(d / "empty.pth", {})


@case(
    "zip-ok-float8",
    "torch-zip",
    "ok",
    "odd-dtype",
    "float8_e4m3fn and float8_e5m2 weights with fp32 scales",
    target="fp8.pt",
    claims=[("torch", "fp8.pt", "loads")],
)
def _(d):
    w = weights(2)["embed.weight"]
    put_torch(
        d / "fp8.pt",
        {
            "w.e4m3": w.to(torch.float8_e4m3fn),
            "w.e5m2": w.to(torch.float8_e5m2),
            "w.scale": torch.tensor(0.125),
        },
    )


@case(
    "zip-ok-tied-weights",
    "torch-zip",
    "ok",
    "shared-storage",
    "embedding and output head are one storage; a third entry is a view of it",
    target="tied.pt",
    claims=[("torch", "tied.pt", "loads")],
)
def _(d):
    sd = weights(3)
    sd["lm_head.weight"] = sd["embed.weight"]
    sd["embed.first_rows"] = sd["embed.weight"][:4]
    put_torch(d / "tied.pt", sd)


@case(
    "zip-ok-compiled-prefix",
    "torch-zip",
    "ok",
    "odd-names",
    "every name carries the _orig_mod. prefix of a compiled module",
    target="compiled.pt",
    claims=[("torch", "compiled.pt", "loads")],
)
def _(d):
    put_torch(d / "compiled.pt", weights(4, prefix="_orig_mod."))


@case(
    "zip-ok-crc-not-computed",
    "torch-zip",
    "ok",
    "odd-container",
    "saved with CRC32 switched off: every record has CRC 0, which means 'not computed'",
    target="nocrc.pt",
    also=["warn"],
    claims=[("torch", "nocrc.pt", "loads"), ("crc", "nocrc.pt", "bad")],
)
def _(d):
    from torch.utils.serialization import config

    before = config.save.compute_crc32
    config.save.compute_crc32 = False
    try:
        put_torch(d / "nocrc.pt", weights(5))
    finally:
        config.save.compute_crc32 = before


@case(
    "zip-ok-requires-grad-parameters",
    "torch-zip",
    "ok",
    "odd-object",
    "values are nn.Parameter objects, one of them frozen",
    target="params.pt",
    claims=[("torch", "params.pt", "loads")],
)
def _(d):
    put_torch(d / "params.pt", {k: torch.nn.Parameter(v, requires_grad=not k.endswith("bias")) for k, v in weights(6).items()})


@case(
    "zip-corrupt-truncated-60",
    "torch-zip",
    "corrupt",
    "truncated",
    "the copy stopped at 60 %: the zip directory at the end is gone",
    target="model.pt",
    blame=["model.pt"],
    claims=[("torch", "model.pt", "raises")],
)
def _(d):
    cut(put_torch(d / "model.pt", weights(7)), 0.6)


@case(
    "zip-corrupt-bit-flip-in-weights",
    "torch-zip",
    "corrupt",
    "bit-flip",
    "one bit differs inside a weight; torch.load accepts it silently, only the CRC tells",
    target="model.pt",
    blame=["data/0"],
    claims=[("torch", "model.pt", "loads"), ("crc", "model.pt", "bad")],
)
def _(d):
    p = put_torch(d / "model.pt", weights(8))
    flip(p, record_span(p, "data/0")[0] + 501)


@case(
    "zip-corrupt-zeroed-tail",
    "torch-zip",
    "corrupt",
    "zeroed-region",
    "right length, but the last 3 KiB are zeros: a disk that filled up after preallocation",
    target="model.pt",
    blame=["model.pt"],
    claims=[("torch", "model.pt", "raises")],
)
def _(d):
    p = put_torch(d / "model.pt", weights(9))
    zero(p, p.stat().st_size - 3072, 3072)


@case(
    "zip-corrupt-record-missing",
    "torch-zip",
    "corrupt",
    "missing-record",
    "the archive opens, but the storage record of one tensor is not in it",
    target="model.pt",
    blame=["data/1"],
    claims=[("torch", "model.pt", "raises")],
)
def _(d):
    p = put_torch(d / "model.pt", weights(10))
    rezip(p, lambda n, b: None if n.endswith("data/1") else b)


@case(
    "zip-corrupt-html-error-page",
    "torch-zip",
    "corrupt",
    "not-a-checkpoint",
    "a proxy's error page was stored under the name of the weights",
    target="pytorch_model.bin",
    blame=["pytorch_model.bin"],
    claims=[("torch", "pytorch_model.bin", "raises")],
)
def _(d):
    put(d / "pytorch_model.bin", "<html><head><title>502 Bad Gateway</title></head></html>\n" * 8)


@case(
    "zip-corrupt-leading-bytes",
    "torch-zip",
    "corrupt",
    "length-mismatch",
    "16 bytes too many in front: a chunked upload left its size line in the object",
    target="model.pt",
    blame=["model.pt"],
    claims=[("torch", "model.pt", "raises")],
)
def _(d):
    put(d / "model.pt", b"2b80\r\n".ljust(16) + torch_bytes(weights(50)))


@case(
    "zip-corrupt-zero-length",
    "torch-zip",
    "corrupt",
    "empty-file",
    "the weights file exists with 0 bytes",
    target="model.pt",
    blame=["model.pt"],
    also=["incomplete"],
    claims=[("torch", "model.pt", "raises")],
)
def _(d):
    put(d / "model.pt", b"")


@case(
    "zip-warn-nan-weights",
    "torch-zip",
    "warn",
    "non-finite",
    "a weight matrix holds NaN: the file is sound, the model is not",
    target="model.pt",
    blame=["layers.1.weight"],
    also=["corrupt"],
    claims=[("torch", "model.pt", "loads"), ("crc", "model.pt", "good")],
)
def _(d):
    sd = weights(11)
    sd["layers.1.weight"][3, 5] = float("nan")
    put_torch(d / "model.pt", sd)


@case(
    "zip-hostile-os-system",
    "torch-zip",
    "hostile",
    "code-execution",
    "unpickling calls os.system",
    target="model.pt",
    blame=["model.pt"],
    claims=[("torch", "model.pt", "raises")],
)
def _(d):
    put_torch(d / "model.pt", {"w": torch.ones(4), "extra": shell_payload()})


@case(
    "zip-hostile-bomb",
    "torch-zip",
    "hostile",
    "zip-bomb",
    "a 90 kB file whose one record inflates to 88 MiB of zeros",
    target="model.pt",
    blame=["model.pt"],
)
def _(d):
    p = put_torch(d / "model.pt", {"w": torch.zeros(64)})
    rezip(p, lambda n, b: bytes(88 << 20) if n.endswith("data/0") else b, zipfile.ZIP_DEFLATED)


@case(
    "zip-hostile-entry-climbs-out",
    "torch-zip",
    "hostile",
    "path-traversal",
    "torch.load is happy, but the entry archive/../../escape.txt waits for a tool that unpacks",
    target="model.pt",
    blame=["escape.txt"],
    claims=[("torch", "model.pt", "loads")],
)
def _(d):
    p = put_torch(d / "model.pt", weights(12))
    rezip(p, extra=[("archive/../../escape.txt", b"out of the tree\n")])


# ===== torch.save, old container


@case(
    "legacy-ok",
    "torch-legacy",
    "ok",
    "old-container",
    "the stream that torch.save wrote before version 1.6",
    target="old.pth",
    claims=[("torch", "old.pth", "loads")],
)
def _(d):
    put_legacy(d / "old.pth", weights(13))


@case(
    "legacy-corrupt-truncated",
    "torch-legacy",
    "corrupt",
    "truncated",
    "the stream ends in the middle of the storages",
    target="old.pth",
    blame=["old.pth"],
    claims=[("torch", "old.pth", "raises")],
)
def _(d):
    cut(put_legacy(d / "old.pth", weights(14)), 0.7)


@case(
    "legacy-corrupt-magic-number",
    "torch-legacy",
    "corrupt",
    "bad-header",
    "the first pickle of the stream is not the magic number",
    target="old.pth",
    blame=["old.pth"],
    claims=[("torch", "old.pth", "raises")],
)
def _(d):
    put(d / "old.pth", pickle.dumps(1234567890, protocol=2) + pickle.dumps(1001, protocol=2) + bytes(256))


@case(
    "legacy-hostile-os-system",
    "torch-legacy",
    "hostile",
    "code-execution",
    "an old-style stream whose object pickle calls os.system",
    target="old.pth",
    blame=["old.pth"],
    claims=[("torch", "old.pth", "raises")],
)
def _(d):
    put_legacy(d / "old.pth", {"w": torch.ones(2), "extra": shell_payload()})


# ===== safetensors, one file


@case(
    "st-ok-unicode-zero-dim",
    "safetensors",
    "ok",
    "odd-names",
    "unicode names, a zero-dim tensor, a tensor without elements, bf16 and a metadata note",
    target="model.safetensors",
    claims=[("st", "model.safetensors", "loads")],
)
def _(d):
    put_st(
        d / "model.safetensors",
        {
            "層.0.重み": torch.ones(3, 3),
            "étage/β": torch.zeros(2, dtype=torch.bfloat16),
            "scale": torch.tensor(0.5),
            "nothing": torch.zeros(0, 8),
        },
        {"note": "données"},
    )


@case(
    "st-ok-float8",
    "safetensors",
    "ok",
    "odd-dtype",
    "float8 tensors of both usual kinds",
    target="model.safetensors",
    claims=[("st", "model.safetensors", "loads")],
)
def _(d):
    w = weights(15)["layers.0.weight"]
    put_st(d / "model.safetensors", {"a": w.to(torch.float8_e4m3fn), "b": w.to(torch.float8_e5m2)})


@case(
    "st-corrupt-truncated-body",
    "safetensors",
    "corrupt",
    "truncated",
    "header whole, tensor bytes cut short",
    target="model.safetensors",
    blame=["model.safetensors"],
    claims=[("st", "model.safetensors", "raises")],
)
def _(d):
    cut(put_st(d / "model.safetensors", dict(weights(16))), 0.75)


@case(
    "st-corrupt-lfs-pointer",
    "safetensors",
    "corrupt",
    "not-a-checkpoint",
    "a large-file pointer text was backed up instead of the file it points to",
    target="model.safetensors",
    blame=["model.safetensors"],
    claims=[("st", "model.safetensors", "raises")],
)
def _(d):
    put(
        d / "model.safetensors",
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{hashlib.sha256(b'weights').hexdigest()}\nsize 4976698672\n",
    )


@case(
    "st-corrupt-overlapping-offsets",
    "safetensors",
    "corrupt",
    "bad-offsets",
    "two tensors claim the same bytes",
    target="model.safetensors",
    blame=["b"],
    claims=[("st", "model.safetensors", "raises")],
)
def _(d):
    header = {"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}, "b": {"dtype": "F32", "shape": [4], "data_offsets": [8, 24]}}
    put(d / "model.safetensors", st_raw(header, bytes(24)))


@case(
    "st-hostile-header-length",
    "safetensors",
    "hostile",
    "huge-length",
    "the header claims to be 2**62 bytes long",
    target="model.safetensors",
    blame=["model.safetensors"],
    also=["corrupt"],
    claims=[("st", "model.safetensors", "raises")],
)
def _(d):
    header = {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    put(d / "model.safetensors", st_raw(header, bytes(4), length=1 << 62))


# ===== safetensors, shards with an index


@case(
    "shards-ok-three",
    "safetensors-sharded",
    "ok",
    "plain",
    "three shards and an index that agrees",
    claims=[("st", "model-00002-of-00003.safetensors", "loads")],
)
def _(d):
    put_st_shards(d, split(weights(17), 3))


@case(
    "shards-incomplete-one-of-five",
    "safetensors-sharded",
    "incomplete",
    "missing-shard",
    "the index names 5 shards, 4 are here",
    blame=["model-00004-of-00005.safetensors"],
)
def _(d):
    put_st_shards(d, split(weights(18), 5), skip=["model-00004-of-00005.safetensors"])


@case(
    "shards-corrupt-tensor-not-in-shard",
    "safetensors-sharded",
    "corrupt",
    "index-disagrees",
    "the index puts a tensor in a shard whose header does not have it",
    blame=["extra.head.weight"],
    also=["incomplete"],
)
def _(d):
    put_st_shards(d, split(weights(19), 2), index_extra={"extra.head.weight": "model-00002-of-00002.safetensors"})


@case(
    "shards-corrupt-one-truncated",
    "safetensors-sharded",
    "corrupt",
    "truncated",
    "all shards present, the second one is cut short",
    blame=["model-00002-of-00003.safetensors"],
    claims=[("st", "model-00002-of-00003.safetensors", "raises")],
)
def _(d):
    names = put_st_shards(d, split(weights(20), 3))
    cut(d / names[1], -20)


@case(
    "shards-warn-stale-leftover",
    "safetensors-sharded",
    "warn",
    "stray-file",
    "the index wants two shards; a third one of an earlier, larger save is still there",
    blame=["model-00003-of-00003.safetensors"],
    also=["ok"],
)
def _(d):
    put_st_shards(d, split(weights(21), 2))
    put_st(d / "model-00003-of-00003.safetensors", {"layers.1.bias": torch.ones(16)})


@case(
    "shards-hostile-index-climbs-out",
    "safetensors-sharded",
    "hostile",
    "path-traversal",
    "the index names a shard in a folder above; a file is there to be read",
    blame=["../_outside/donor.safetensors"],
)
def _(d):
    put_st_shards(d, split(weights(22), 2), index_extra={"stolen.weight": f"../{OUTSIDE}/donor.safetensors"})


# ===== HF Trainer folders


@case(
    "hf-ok-opaque-pickles",
    "hf-trainer",
    "ok",
    "foreign-class",
    "training_args.bin names a class that is not installed and rng_state.pth holds numpy "
    "state: the safe loader refuses both, and both are what this trainer always writes",
    target="checkpoint-200",
    also=["warn"],
    claims=[
        ("torch", "checkpoint-200/training_args.bin", "raises"),
        ("torch", "checkpoint-200/rng_state.pth", "raises"),
        ("torch", "checkpoint-200/optimizer.pt", "loads"),
        ("st", "checkpoint-200/model.safetensors", "loads"),
    ],
)
def _(d):
    put_hf(d / "checkpoint-200", 23, 200)


@case(
    "hf-incomplete-no-trainer-state",
    "hf-trainer",
    "incomplete",
    "missing-part",
    "the save was cut before trainer_state.json, which is written last",
    target="checkpoint-300",
    blame=["trainer_state.json"],
)
def _(d):
    put_hf(d / "checkpoint-300", 24, 300)
    (d / "checkpoint-300" / "trainer_state.json").unlink()


@case(
    "hf-incomplete-no-optimizer",
    "hf-trainer",
    "incomplete",
    "missing-part",
    "weights without optimizer.pt: fine to serve, not to resume",
    target="checkpoint-400",
    blame=["optimizer.pt"],
    also=["warn"],
)
def _(d):
    put_hf(d / "checkpoint-400", 25, 400)
    (d / "checkpoint-400" / "optimizer.pt").unlink()


@case(
    "hf-corrupt-state-json-cut",
    "hf-trainer",
    "corrupt",
    "truncated",
    "trainer_state.json ends in the middle of a value",
    target="checkpoint-500",
    blame=["trainer_state.json"],
    claims=[("json", "checkpoint-500/trainer_state.json", "raises")],
)
def _(d):
    put_hf(d / "checkpoint-500", 26, 500)
    cut(d / "checkpoint-500" / "trainer_state.json", 0.5)


@case(
    "hf-ok-config-says-bf16-weights-fp32",
    "hf-trainer",
    "ok",
    "dtype-differs",
    "config.json says bfloat16, the weights are fp32: legal, loaders cast",
    target="checkpoint-600",
    also=["warn"],
)
def _(d):
    put_hf(d / "checkpoint-600", 27, 600)
    put_json(d / "checkpoint-600" / "config.json", {"model_type": "toy", "torch_dtype": "bfloat16"})


# ===== DeepSpeed ZeRO folders


@case(
    "ds-ok-stage2",
    "deepspeed",
    "ok",
    "plain",
    "latest, model states, two optimizer partitions",
    claims=[
        ("torch", "global_step100/mp_rank_00_model_states.pt", "loads"),
        ("torch", "global_step100/zero_pp_rank_1_mp_rank_00_optim_states.pt", "loads"),
    ],
)
def _(d):
    put_deepspeed(d, 28, 100)


@case(
    "ds-ok-loss-scaler-class",
    "deepspeed",
    "ok",
    "foreign-class",
    "the optimizer file holds a loss scaler object whose class is not installed here",
    also=["warn"],
    claims=[("torch", "global_step40/zero_pp_rank_0_mp_rank_00_optim_states.pt", "raises")],
)
def _(d):
    put_deepspeed(d, 29, 40, scaler=True)


@case(
    "ds-incomplete-latest-names-missing-tag",
    "deepspeed",
    "incomplete",
    "dangling-tag",
    "latest says global_step200, only global_step100 is here",
    blame=["global_step200"],
)
def _(d):
    put_deepspeed(d, 30, 100)
    put(d / "latest", "global_step200")


@case(
    "ds-incomplete-optimizer-partition",
    "deepspeed",
    "incomplete",
    "missing-shard",
    "partition_count is 4, the files of ranks 0, 1 and 3 are here",
    blame=["zero_pp_rank_2_mp_rank_00_optim_states.pt"],
)
def _(d):
    tag = put_deepspeed(d, 31, 100, ranks=4)
    (tag / "zero_pp_rank_2_mp_rank_00_optim_states.pt").unlink()


@case(
    "ds-corrupt-model-states-cut",
    "deepspeed",
    "corrupt",
    "truncated",
    "the model states file lost its last 200 bytes",
    blame=["mp_rank_00_model_states.pt"],
    claims=[("torch", "global_step100/mp_rank_00_model_states.pt", "raises")],
)
def _(d):
    cut(put_deepspeed(d, 32, 100) / "mp_rank_00_model_states.pt", -200)


# ===== Megatron folders


@case(
    "mg-ok-namespace-args",
    "megatron",
    "ok",
    "foreign-class",
    "tracker and folder agree; args is an argparse.Namespace, which the safe loader refuses",
    also=["warn"],
    claims=[
        ("torch", "iter_0000100/mp_rank_00/model_optim_rng.pt", "raises"),
        ("torch-any", "iter_0000100/mp_rank_00/model_optim_rng.pt", "loads"),
    ],
)
def _(d):
    put_megatron(d, 33, 100, tp=2)


@case(
    "mg-incomplete-tracker-ahead",
    "megatron",
    "incomplete",
    "dangling-tag",
    "the tracker says 300, the newest folder is iter_0000200",
    blame=["iter_0000300"],
)
def _(d):
    put_megatron(d, 34, 200, tracker="300")


@case(
    "mg-incomplete-async-save-unfinished",
    "megatron",
    "incomplete",
    "missing-metadata",
    "the tracker moved on, the folder has rank files but no .metadata yet",
    blame=[".metadata"],
)
def _(d):
    put_megatron_dist(d, 35, 120, meta=None)


# ===== distributed checkpoint directories


@case("dcp-ok-two-ranks", "dcp", "ok", "plain", "row-sharded over two ranks, one non-tensor entry", claims=[("dcp", ".", "loads")])
def _(d):
    put_dcp(d, weights(36), 2, objects={"train.step": 1000})


@case(
    "dcp-ok-zero-dim-and-bf16",
    "dcp",
    "ok",
    "odd-dtype",
    "a zero-dim tensor lives whole on rank 0, the rest is bf16",
    claims=[("dcp", ".", "loads")],
)
def _(d):
    put_dcp(d, {**weights(37, dtype=torch.bfloat16), "opt.step": torch.tensor(12.0)}, 2)


@case(
    "dcp-incomplete-no-metadata",
    "dcp",
    "incomplete",
    "missing-metadata",
    "rank files only: the coordinator died before it wrote .metadata",
    blame=[".metadata"],
    claims=[("dcp", ".", "raises")],
)
def _(d):
    put_dcp(d, weights(38), 2, meta=None)


@case(
    "dcp-corrupt-rank-file-cut",
    "dcp",
    "corrupt",
    "truncated",
    "__1_0.distcp is shorter than the ranges that .metadata gives for it",
    blame=["__1_0.distcp"],
    claims=[("dcp", ".", "raises")],
)
def _(d):
    put_dcp(d, weights(39), 2)
    cut(d / "__1_0.distcp", 0.5)


@case(
    "dcp-corrupt-bit-flip",
    "dcp",
    "corrupt",
    "bit-flip",
    "one bit differs in the bytes of a chunk; loading succeeds, the CRC inside the chunk tells",
    blame=["__0_0.distcp"],
    claims=[("dcp", ".", "loads")],
)
def _(d):
    md = put_dcp(d, weights(40), 2)
    info = md.storage_data[MetadataIndex("embed.weight", torch.Size([0, 0]))]
    chunk = d / "chunk"
    chunk.write_bytes((d / info.relative_path).read_bytes()[info.offset : info.offset + info.length])
    at = info.offset + record_span(chunk, "data/0")[0] + 77
    chunk.unlink()
    flip(d / info.relative_path, at)


@case(
    "dcp-hostile-metadata-pickle",
    "dcp",
    "hostile",
    "code-execution",
    "the stock reader unpickles .metadata without any guard; this one calls os.system",
    blame=[".metadata"],
)
def _(d):
    put_dcp(d, weights(41), 2)
    put(d / ".metadata", pickle.dumps(shell_payload()))


# ===== plain per-rank shards


@case(
    "ranks-ok-spaces-unicode-nested",
    "rank-shards",
    "ok",
    "odd-names",
    "names with spaces and accents, two folders deep",
    target="run É 1/step 100",
    claims=[("torch", "run É 1/step 100/rank_00000.pt", "loads")],
)
def _(d):
    put_ranks(d / "run É 1" / "step 100", 42, 4, 100)


@case(
    "ranks-ok-latest-symlink",
    "rank-shards",
    "ok",
    "symlink-inside",
    "latest is a relative link to a step folder next to it",
    target="latest",
)
def _(d):
    put_ranks(d / "step_100", 43, 2, 100)
    (d / "latest").symlink_to("step_100")


@case(
    "ranks-ok-sparse",
    "rank-shards",
    "ok",
    "sparse-file",
    "a zero tensor is stored as a hole: fewer blocks on disk than the length says",
    claims=[("torch", "rank_00000.pt", "loads")],
)
def _(d):
    sd = rank_payload(44, 0, 1, 5)
    sd["model"]["cache"] = torch.zeros(24_000)
    put_sparse(d / "rank_00000.pt", torch_bytes(sd))


@case(
    "ranks-ok-empty-marker", "rank-shards", "ok", "empty-optional-file", "a 0-byte _SUCCESS marker and a 0-byte log sit next to good shards"
)
def _(d):
    put_ranks(d, 45, 2, 100)
    put(d / "_SUCCESS", b"")
    put(d / "events.log", b"")


@case(
    "ranks-corrupt-rank-3-cut",
    "rank-shards",
    "corrupt",
    "truncated",
    "shard rank_00003.pt truncated",
    blame=["rank_00003.pt"],
    claims=[("torch", "rank_00003.pt", "raises"), ("torch", "rank_00002.pt", "loads")],
)
def _(d):
    put_ranks(d, 46, 4, 100)
    cut(d / "rank_00003.pt", 0.9)


@case(
    "ranks-incomplete-rank-2",
    "rank-shards",
    "incomplete",
    "missing-shard",
    "world_size is 4 in every file, rank 2 is not here",
    blame=["rank_00002.pt"],
)
def _(d):
    put_ranks(d, 47, 4, 100, skip=[2])


@case(
    "ranks-corrupt-mixed-steps",
    "rank-shards",
    "corrupt",
    "mixed-save",
    "rank 1 is from step 900, the others from step 1000: each loads, together they are no model",
    blame=["rank_00001.pt"],
    also=["incomplete"],
    claims=[("torch", "rank_00001.pt", "loads")],
)
def _(d):
    put_ranks(d, 48, 4, 1000)
    put_torch(d / "rank_00001.pt", rank_payload(48, 1, 4, 900))


@case(
    "ranks-hostile-link-out",
    "rank-shards",
    "hostile",
    "symlink-outside",
    "rank_00001.pt is a link to a good file outside of the checkpoint",
    blame=["rank_00001.pt"],
    claims=[("torch", "rank_00001.pt", "loads")],
)
def _(d):
    put_ranks(d, 49, 2, 100, skip=[1])
    (d / "rank_00001.pt").symlink_to(f"../{OUTSIDE}/donor.pt")


# --------------------------------------------------------------------------- driver


def tree_bytes(top):
    return sum(p.lstat().st_size for p in top.rglob("*") if p.is_symlink() or p.is_file())


def fingerprint(top):
    h = hashlib.sha256()
    for p in sorted(top.rglob("*")):
        h.update(os.fsencode(p.relative_to(top)))
        if p.is_symlink():
            h.update(os.readlink(p).encode())
        elif p.is_file():
            h.update(p.read_bytes())
    return h.hexdigest()


def main(argv=None):
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("outdir", type=Path)
    ap.add_argument("--only", action="append", help="build only the cases with these names")
    args = ap.parse_args(argv)
    out = args.outdir
    out.mkdir(parents=True, exist_ok=True)
    outside = out / OUTSIDE
    shutil.rmtree(outside, ignore_errors=True)
    put_torch(outside / "donor.pt", rank_payload(7, 1, 2, 100))
    put_st(outside / "donor.safetensors", dict(weights(7)), {"format": "pt"})
    listed = []
    for c in CASES:
        if args.only and c["name"] not in args.only:
            continue
        where = out / c["name"]
        shutil.rmtree(where, ignore_errors=True)
        where.mkdir()
        torch.manual_seed(zlib.crc32(c["name"].encode()))
        c["_build"](where)
        size = tree_bytes(where)
        if size > SIZE_LIMIT:
            raise SystemExit(f"{c['name']}: {size} bytes is over the limit of {SIZE_LIMIT}")
        row = {k: v for k, v in c.items() if not k.startswith("_")}
        row["fingerprint"] = fingerprint(where)
        listed.append(row)
    put_json(out / "cases.json", listed)
    print(f"{len(listed)} cases in {out}")


if __name__ == "__main__":
    main()

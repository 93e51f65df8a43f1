"""More safetensors, single files."""

import json
import struct

import torch

from tests.cases.make_cases import case, cut, put, put_json, put_st, put_st_shards, split, st_raw, weights, zero


def st_case(name, verdict, kind, why, **more):
    more.setdefault("target", "model.safetensors")
    if verdict in ("corrupt", "hostile"):
        more.setdefault("blame", ["model.safetensors"])
    return case(name, "safetensors", verdict, kind, why, **more)


ENTRY = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}


@st_case("st-ok-all-integers", "ok", "odd-dtype", "every integer width, bool, fp64")
def _(d):
    kinds = (
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.uint16,
        torch.uint32,
        torch.uint64,
        torch.bool,
        torch.float64,
    )
    put_st(d / "model.safetensors", {str(k): torch.ones(3).to(k) for k in kinds})


@st_case("st-ok-no-tensors", "ok", "empty", "a header without tensors is a valid file", also=["warn"])
def _(d):
    put(d / "model.safetensors", st_raw({}))


@st_case("st-ok-padded-header", "ok", "odd-container", "the header is padded with spaces to a multiple of 4096")
def _(d):
    text = json.dumps({"a": ENTRY}).encode()
    put(d / "model.safetensors", st_raw(text.ljust(4096), bytes(16)))


@st_case("st-ok-empty-tensor-between", "ok", "empty", "tensors without elements between others")
def _(d):
    header = {
        "a": ENTRY,
        "e": {"dtype": "F32", "shape": [0, 4], "data_offsets": [16, 16]},
        "b": {"dtype": "F32", "shape": [4], "data_offsets": [16, 32]},
    }
    put(d / "model.safetensors", st_raw(header, bytes(32)))


@st_case("st-ok-four-bit", "ok", "odd-dtype", "4-bit floats, two in a byte")
def _(d):
    put(d / "model.safetensors", st_raw({"a": {"dtype": "F4", "shape": [8], "data_offsets": [0, 4]}}, bytes(4)))


@st_case("st-ok-unknown-dtype", "ok", "odd-dtype", "a dtype of a newer library", also=["warn"])
def _(d):
    put(d / "model.safetensors", st_raw({"a": {"dtype": "F2_NEW", "shape": [4], "data_offsets": [0, 1]}}, bytes(1)))


@st_case("st-ok-adapter", "ok", "plain", "a LoRA adapter folder", target=".")
def _(d):
    put_st(d / "adapter_model.safetensors", {"base.q.lora_A.weight": torch.ones(4, 8), "base.q.lora_B.weight": torch.zeros(8, 4)})
    put_json(d / "adapter_config.json", {"peft_type": "LORA", "r": 4})
    put(d / "README.md", "# adapter\n")


@st_case("st-ok-pipeline", "ok", "plain", "a diffusers pipeline: parts in sub-folders", target=".")
def _(d):
    put_json(d / "model_index.json", {"_class_name": "ToyPipeline", "unet": ["diffusers", "UNet"], "scheduler": ["diffusers", "DDIM"]})
    put_st(d / "unet" / "diffusion_pytorch_model.safetensors", dict(weights(201)))
    put_json(d / "unet" / "config.json", {"a": 1})
    put_json(d / "scheduler" / "scheduler_config.json", {"b": 1})


@st_case(
    "st-incomplete-pipeline-part",
    "incomplete",
    "missing-part",
    "the pipeline names a part whose folder is not there",
    target=".",
    blame=["vae"],
)
def _(d):
    put_json(d / "model_index.json", {"_class_name": "ToyPipeline", "unet": ["diffusers", "UNet"], "vae": ["diffusers", "VAE"]})
    put_st(d / "unet" / "diffusion_pytorch_model.safetensors", dict(weights(202)))


@st_case("st-ok-temporary-file-beside", "ok", "stray-file", "a kill left the temporary file of a later save", target=".", also=["warn"])
def _(d):
    put_st(d / "model.safetensors", dict(weights(203)))
    put(d / ".tmpAb3dE9", b"\x10\x00\x00\x00\x00\x00\x00\x00{")


@st_case(
    "st-ok-stale-index", "ok", "stray-file", "an index of an older, sharded save stands beside the single file", target=".", also=["warn"]
)
def _(d):
    put_st_shards(d, split(weights(204), 2), skip=["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"])
    put_st(d / "model.safetensors", dict(weights(204)))


@st_case("st-warn-nan", "warn", "non-finite", "NaN in bf16", blame=["embed.weight"], also=["corrupt"])
def _(d):
    sd = weights(205, dtype=torch.bfloat16)
    sd["embed.weight"][0, 1] = float("nan")
    put_st(d / "model.safetensors", dict(sd))


@st_case("st-corrupt-header-cut", "corrupt", "truncated", "the cut is inside the header")
def _(d):
    cut(put_st(d / "model.safetensors", dict(weights(206))), 60)


@st_case("st-corrupt-four-bytes", "corrupt", "truncated", "four bytes are left")
def _(d):
    cut(put_st(d / "model.safetensors", dict(weights(206))), 4)


@st_case("st-corrupt-empty-file", "corrupt", "empty-file", "no bytes at all", also=["incomplete"])
def _(d):
    put(d / "model.safetensors", b"")


@st_case("st-corrupt-cut-one-byte", "corrupt", "truncated", "the last byte is missing")
def _(d):
    cut(put_st(d / "model.safetensors", dict(weights(207))), -1)


@st_case("st-corrupt-trailing-bytes", "corrupt", "length-mismatch", "bytes follow the last tensor: the library refuses the file")
def _(d):
    put_st(d / "model.safetensors", dict(weights(208)))
    with (d / "model.safetensors").open("ab") as f:
        f.write(b"\0" * 64)


@st_case("st-corrupt-leading-bytes", "corrupt", "length-mismatch", "a chunk size line stands in front", also=["hostile"])
def _(d):
    p = put_st(d / "model.safetensors", dict(weights(208)))
    put(p, b"2b80\r\n" + p.read_bytes())


@st_case("st-corrupt-hole", "corrupt", "bad-offsets", "bytes between two tensors belong to nobody", blame=["b"])
def _(d):
    put(d / "model.safetensors", st_raw({"a": ENTRY, "b": {"dtype": "F32", "shape": [4], "data_offsets": [24, 40]}}, bytes(40)))


@st_case("st-corrupt-offsets-backwards", "corrupt", "bad-offsets", "a tensor ends before it begins", blame=["a"])
def _(d):
    put(d / "model.safetensors", st_raw({"a": {"dtype": "F32", "shape": [4], "data_offsets": [16, 0]}}, bytes(16)))


@st_case("st-corrupt-shape-and-offsets", "corrupt", "bad-offsets", "the shape needs other bytes than the offsets give", blame=["a"])
def _(d):
    put(d / "model.safetensors", st_raw({"a": {"dtype": "F32", "shape": [5], "data_offsets": [0, 16]}}, bytes(16)))


@st_case("st-corrupt-negative-shape", "corrupt", "bad-offsets", "a negative length", blame=["a"])
def _(d):
    put(d / "model.safetensors", st_raw({"a": {"dtype": "F32", "shape": [-4], "data_offsets": [0, 16]}}, bytes(16)))


@st_case("st-corrupt-shape-overflows", "corrupt", "bad-offsets", "a shape whose product overflows 64 bits", blame=["a"], also=["hostile"])
def _(d):
    put(d / "model.safetensors", st_raw({"a": {"dtype": "F32", "shape": [1 << 62, 16], "data_offsets": [0, 0]}}, b""))


@st_case("st-corrupt-duplicate-key", "corrupt", "bad-header", "one tensor is described twice", blame=["a"])
def _(d):
    text = b'{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    put(d / "model.safetensors", st_raw(text, bytes(16)))


@st_case("st-corrupt-header-not-json", "corrupt", "bad-header", "the header is not JSON")
def _(d):
    put(d / "model.safetensors", st_raw(b'{"a": {dtype: F32}}', bytes(16)))


@st_case("st-corrupt-header-not-utf8", "corrupt", "bad-header", "the header is not UTF-8")
def _(d):
    put(d / "model.safetensors", st_raw(b'{"\xff\xfe": 1}', bytes(16)))


@st_case("st-corrupt-header-nested", "corrupt", "bad-header", "the header nests 50,000 arrays", also=["hostile"])
def _(d):
    put(d / "model.safetensors", st_raw(b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}", b""))


@st_case("st-corrupt-metadata-numbers", "corrupt", "bad-header", "__metadata__ holds a number: the library refuses the file", also=["warn"])
def _(d):
    put(d / "model.safetensors", st_raw({"__metadata__": {"step": 3}, "a": ENTRY}, bytes(16)))


@st_case("st-corrupt-all-zeros", "corrupt", "zeroed-region", "right length, nothing but zeros")
def _(d):
    p = put_st(d / "model.safetensors", dict(weights(209)))
    zero(p, 0, p.stat().st_size)


@st_case("st-corrupt-html", "corrupt", "not-a-checkpoint", "a login page under the name of the weights")
def _(d):
    put(d / "model.safetensors", "<!DOCTYPE html><html><body>Sign in</body></html>")


@st_case("st-corrupt-json-error", "corrupt", "not-a-checkpoint", "an error message under the name of the weights")
def _(d):
    put(d / "model.safetensors", '{"error":"Entry not found"}')


@st_case("st-hostile-header-all-ones", "hostile", "huge-length", "the header claims 2**64 - 1 bytes", also=["corrupt"])
def _(d):
    put(d / "model.safetensors", struct.pack("<Q", (1 << 64) - 1) + b'{"a":1}')

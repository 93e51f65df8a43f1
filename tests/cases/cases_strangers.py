"""Layouts that are not ours: named, and neither corrupt nor hostile. And places where nothing can be said."""

import io
import json
import os
import pickle
import tarfile
import zipfile

import numpy as np
import torch

from tests.cases.make_cases import case, put, put_json, put_st, weights


def _orbax(folder):
    put(folder / "manifest.ocdbt", b"ocdbt")
    put(folder / "d" / "0a1b", bytes(40))
    put_json(folder / "_METADATA", {"tree_metadata": {}})
    put_json(folder / "_sharding", {})


@case("unknown-gguf", "unknown", "unknown", "foreign-layout", "a GGUF file", target="model.gguf", blame=["GGUF"])
def _(d):
    put(d / "model.gguf", b"GGUF\x03\0\0\0" + bytes(64))


@case("unknown-gguf-folder", "unknown", "unknown", "foreign-layout", "a folder with a GGUF file")
def _(d):
    put(d / "model.gguf", b"GGUF\x03\0\0\0" + bytes(64))


@case("unknown-npz", "unknown", "unknown", "foreign-layout", "a NumPy archive", target="model.npz", blame=["NumPy"])
def _(d):
    out = io.BytesIO()
    np.savez(out, a=np.ones(3), b=np.zeros(2))
    put(d / "model.npz", out.getvalue())


@case("unknown-npy", "unknown", "unknown", "foreign-layout", "a NumPy array", target="w.npy")
def _(d):
    out = io.BytesIO()
    np.save(out, np.ones(3))
    put(d / "w.npy", out.getvalue())


@case("unknown-bare-pickle", "unknown", "unknown", "foreign-layout", "a bare pickle of plain values", target="state.pkl", blame=["pickle"])
def _(d):
    put(d / "state.pkl", pickle.dumps({"step": 3, "values": [1.0, 2.0]}))


@case("unknown-bare-pickle-named-pt", "unknown", "unknown", "foreign-layout", "a bare pickle under a torch ending", target="state.pt")
def _(d):
    put(d / "state.pt", pickle.dumps({"step": 3, "values": [1.0, 2.0]}))


@case("unknown-bare-pickle-protocol-0", "unknown", "unknown", "foreign-layout", "a bare pickle in letters", target="state.pkl")
def _(d):
    put(d / "state.pkl", pickle.dumps({"step": 3, "values": [1.0, 2.0]}, protocol=0))


@case("unknown-bare-pickle-cut", "unknown", "unknown", "foreign-layout", "a bare pickle that is cut", target="state.pkl", also=["corrupt"])
def _(d):
    put(d / "state.pkl", pickle.dumps({"step": 3, "values": list(range(100))})[:60])


@case("unknown-pt2", "unknown", "unknown", "foreign-layout", "a torch.export archive", target="model.pt2", blame=["torch.export"])
def _(d):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("model/archive_format", "pt2")
        z.writestr("model/archive_version", "0")
        z.writestr("model/models/model.json", "{}")
        z.writestr("model/data/weights/weight_0", bytes(16))
    put(d / "model.pt2", out.getvalue())


@case("unknown-zip", "unknown", "unknown", "foreign-layout", "an ordinary zip archive", target="files.zip")
def _(d):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("readme.txt", "hello")
    put(d / "files.zip", out.getvalue())


@case("unknown-tar", "unknown", "unknown", "foreign-layout", "a tar archive", target="files.tar")
def _(d):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        info = tarfile.TarInfo("a.txt")
        info.size = 3
        t.addfile(info, io.BytesIO(b"abc"))
    put(d / "files.tar", out.getvalue())


@case("unknown-hdf5", "unknown", "unknown", "foreign-layout", "an HDF5 file", target="model.h5")
def _(d):
    put(d / "model.h5", b"\x89HDF\r\n\x1a\n" + bytes(64))


@case("unknown-text", "unknown", "unknown", "foreign-layout", "a text file", target="notes.txt")
def _(d):
    put(d / "notes.txt", "nothing of interest here\n")


@case("unknown-orbax", "unknown", "unknown", "foreign-layout", "an Orbax checkpoint", blame=["Orbax"])
def _(d):
    _orbax(d)


@case("unknown-orbax-step", "unknown", "unknown", "foreign-layout", "the step folder of an Orbax run", target="100", blame=["Orbax"])
def _(d):
    _orbax(d / "100" / "default")
    put_json(d / "100" / "_CHECKPOINT_METADATA", {"init_timestamp_nsecs": 1})


@case("unknown-orbax-run", "unknown", "unknown", "foreign-layout", "an Orbax run folder", blame=["Orbax"])
def _(d):
    for step in ("100", "200"):
        _orbax(d / step / "default")
        put_json(d / step / "_CHECKPOINT_METADATA", {"init_timestamp_nsecs": 1})


@case(
    "unknown-orbax-being-written",
    "unknown",
    "unknown",
    "foreign-layout",
    "an Orbax folder under its temporary name",
    target="100.orbax-checkpoint-tmp-17",
    also=["incomplete"],
)
def _(d):
    _orbax(d / "100.orbax-checkpoint-tmp-17")


@case("unknown-tensorflow", "unknown", "unknown", "foreign-layout", "a TensorFlow checkpoint")
def _(d):
    put(d / "checkpoint", 'model_checkpoint_path: "ckpt-1"\n')
    put(d / "ckpt-1.index", b"\0" * 40)
    put(d / "ckpt-1.data-00000-of-00001", b"\1" * 40)


@case("unknown-logs-only", "unknown", "unknown", "foreign-layout", "a folder with logs and configuration", also=["incomplete"])
def _(d):
    put(d / "train.log", "step 1\n")
    put_json(d / "config.json", {"a": 1})


@case("empty-folder", "unknown", "incomplete", "empty", "an empty folder: a save that has just begun", target="step_5", also=["unknown"])
def _(d):
    (d / "step_5").mkdir()
    put(d / "note.txt", "x\n")


@case(
    "link-ok-file-inside", "safetensors", "ok", "symlink-inside", "the path given is a link to a file beside it", target="model.safetensors"
)
def _(d):
    put_st(d / "blob", dict(weights(701)))
    (d / "model.safetensors").symlink_to("blob")


@case(
    "link-incomplete-dangling",
    "unknown",
    "incomplete",
    "symlink-inside",
    "the path given is a link to nothing",
    target="model.safetensors",
    blame=["blob"],
)
def _(d):
    (d / "model.safetensors").symlink_to("blob")


@case(
    "link-hostile-file-outside",
    "unknown",
    "hostile",
    "symlink-outside",
    "the path given is a link out of its folder",
    target="model.safetensors",
    blame=["model.safetensors"],
)
def _(d):
    (d / "model.safetensors").symlink_to("../_outside/donor.safetensors")


@case(
    "link-corrupt-loop",
    "unknown",
    "corrupt",
    "symlink-inside",
    "the path given is a link to itself",
    target="a",
    blame=["a"],
    also=["hostile", "incomplete"],
)
def _(d):
    (d / "a").symlink_to("b")
    (d / "b").symlink_to("a")


@case("link-warn-log-dangling", "safetensors", "warn", "symlink-inside", "a log is a link to nothing", also=["ok"])
def _(d):
    put_st(d / "model.safetensors", dict(weights(702)))
    (d / "latest.log").symlink_to("gone.log")


@case("link-ok-folder-to-itself", "safetensors", "ok", "symlink-inside", "a link to the folder itself: nobody may walk for ever")
def _(d):
    put_st(d / "model.safetensors", dict(weights(703)))
    (d / "here").symlink_to(".")


@case("fifo-hostile", "unknown", "hostile", "special-file", "the path given is a FIFO", target="model.pt", blame=["model.pt"])
def _(d):
    os.mkfifo(d / "model.pt")


@case("name-ok-not-utf8", "safetensors", "ok", "odd-names", "a file beside the weights has a name that is not UTF-8")
def _(d):
    put_st(d / "model.safetensors", dict(weights(704)))
    with open(os.path.join(os.fsencode(d), b"notes-\xff\xfe.txt"), "wb") as f:
        f.write(json.dumps({"a": float(torch.ones(1))}).encode())

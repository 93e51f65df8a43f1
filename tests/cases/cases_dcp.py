"""More distributed checkpoint directories: what ranks leave, holes, overlaps, lies of .metadata."""

import pickle

import torch
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex

from tests.cases.make_cases import OUTSIDE, case, cut, put, put_dcp, put_torch, shell_payload, torch_bytes, weights, zero


def dcp_case(name, verdict, kind, why, **more):
    return case(name, "dcp", verdict, kind, why, **more)


def _first(md, name="embed.weight"):
    return md.storage_data[MetadataIndex(name, torch.Size([0, 0]))]


@dcp_case("dcp-ok-uneven", "ok", "odd-dtype", "17 rows over four ranks, float8 beside int64")
def _(d):
    put_dcp(d, {"a": torch.ones(17, 3), "b": torch.ones(5).to(torch.float8_e4m3fn), "c": torch.arange(4)}, 4)


@dcp_case("dcp-ok-more-ranks-than-rows", "ok", "empty", "fewer rows than ranks, and a tensor without elements", also=["warn"])
def _(d):
    put_dcp(d, {"a": torch.ones(2, 3), "e": torch.zeros(0, 4)}, 3)


@dcp_case("dcp-ok-empty-rank-file", "ok", "empty-optional-file", "a rank had nothing to write and left 0 bytes", also=["warn"])
def _(d):
    put_dcp(d, weights(301), 2)
    put(d / "__2_0.distcp", b"")


@dcp_case("dcp-ok-objects-only", "ok", "odd-object", "no tensors: step, random state, nested configuration")
def _(d):
    put_dcp(d, {}, 1, objects={"train.step": 7, "rng": {"state": [1, 2, 3]}, "config": {"lr": 1e-3}})


@dcp_case("dcp-ok-leftover-beside", "ok", "stray-file", "a rank file of an earlier save on more ranks", also=["warn"])
def _(d):
    put_dcp(d, weights(302), 2)
    put(d / "__5_0.distcp", torch_bytes(torch.ones(3)))


@dcp_case("dcp-ok-two-dimensions", "ok", "plain", "a tensor split over both dimensions")
def _(d):
    put_dcp(d, {"w": torch.arange(16.0).reshape(4, 4)}, 2, edit=lambda md: _split_columns(d, md))


def _split_columns(d, md):
    """Four chunks of 2 x 2, all in a third rank file."""
    at, raw, chunks = 0, b"", []
    md.storage_data.clear()
    full = torch.arange(16.0).reshape(4, 4)
    for row in (0, 2):
        for column in (0, 2):
            data = torch_bytes(full[row : row + 2, column : column + 2].clone())
            offset = torch.Size([row, column])
            chunks.append(ChunkStorageMetadata(offsets=offset, sizes=torch.Size([2, 2])))
            md.storage_data[MetadataIndex("w", offset, len(chunks) - 1)] = _StorageInfo("__0_0.distcp", at, len(data))
            raw += data
            at += len(data)
    md.state_dict_metadata["w"].chunks = chunks
    put(d / "__0_0.distcp", raw)
    (d / "__1_0.distcp").unlink()


@dcp_case("dcp-ok-per-rank-metadata", "ok", "odd-container", "saved without collectives: one metadata file a rank", also=["warn"])
def _(d):
    put_dcp(d, weights(303), 1, meta="__0.metadata")


@dcp_case("dcp-ok-planner-classes", "ok", "foreign-class", "metadata that names planner and framework classes", also=["warn"])
def _(d):
    from torch.distributed.checkpoint.planner import SavePlan

    put_dcp(d, weights(304), 2, edit=lambda md: setattr(md, "planner_data", SavePlan([])))


@dcp_case("dcp-warn-nan", "warn", "non-finite", "NaN in one chunk", blame=["layers.0.weight"], also=["corrupt"])
def _(d):
    sd = weights(305)
    sd["layers.0.weight"][9, 9] = float("nan")
    put_dcp(d, sd, 2)


@dcp_case("dcp-incomplete-metadata-tmp", "incomplete", "missing-metadata", "killed before .metadata.tmp was renamed", blame=[".metadata"])
def _(d):
    put_dcp(d, weights(306), 2, meta=".metadata.tmp")


@dcp_case("dcp-incomplete-rank-file-missing", "incomplete", "missing-shard", "the file of rank 1 is not there", blame=["__1_0.distcp"])
def _(d):
    put_dcp(d, weights(307), 2)
    (d / "__1_0.distcp").unlink()


@dcp_case(
    "dcp-incomplete-no-metadata-cut-files",
    "incomplete",
    "missing-metadata",
    "no .metadata, and rank files are cut, too",
    blame=[".metadata"],
)
def _(d):
    put_dcp(d, weights(308), 2, meta=None)
    cut(d / "__1_0.distcp", 0.5)


@dcp_case(
    "dcp-incomplete-rank-metadata-missing",
    "incomplete",
    "missing-metadata",
    "without collectives: rank 1 wrote data and no map",
    blame=["__1.metadata"],
)
def _(d):
    put_dcp(d, weights(309), 1, meta="__0.metadata")
    put(d / "__1_0.distcp", torch_bytes(torch.ones(3)))


@dcp_case(
    "dcp-corrupt-hole",
    "corrupt",
    "bad-offsets",
    "chunks cover half of the rows; the loader says nothing",
    blame=["embed.weight"],
    claims=[("dcp", ".", "loads")],
)
def _(d):
    put_dcp(d, weights(310), 2, edit=lambda md: md.state_dict_metadata["embed.weight"].chunks.pop())


@dcp_case("dcp-corrupt-overlap", "corrupt", "bad-offsets", "two chunks claim the same rows", blame=["embed.weight"])
def _(d):
    def edit(md):
        chunks = md.state_dict_metadata["embed.weight"].chunks
        chunks[1].offsets = torch.Size([8, 0])
        md.storage_data[MetadataIndex("embed.weight", torch.Size([8, 0]), 1)] = md.storage_data.pop(
            MetadataIndex("embed.weight", torch.Size([16, 0]))
        )

    put_dcp(d, weights(311), 2, edit=edit)


@dcp_case("dcp-corrupt-outside-of-tensor", "corrupt", "bad-offsets", "a chunk lies outside of its tensor", blame=["embed.weight"])
def _(d):
    put_dcp(d, weights(312), 2, edit=lambda md: setattr(md.state_dict_metadata["embed.weight"], "size", torch.Size([20, 16])))


@dcp_case("dcp-corrupt-other-shape-stored", "corrupt", "index-disagrees", "a chunk of another shape than promised", blame=["embed.weight"])
def _(d):
    md = put_dcp(d, {"embed.weight": torch.ones(8, 4)}, 1)
    info = _first(md)
    data = torch_bytes(torch.ones(4, 8))
    put(d / info.relative_path, data)
    info.length = len(data)
    put(d / ".metadata", pickle.dumps(md))


@dcp_case("dcp-corrupt-other-dtype-stored", "corrupt", "index-disagrees", "a chunk of another dtype than promised", blame=["embed.weight"])
def _(d):
    md = put_dcp(d, {"embed.weight": torch.ones(8, 4)}, 1)
    data = torch_bytes(torch.ones(8, 4, dtype=torch.float64))
    put(d / "__0_0.distcp", data)
    _first(md).length = len(data)
    put(d / ".metadata", pickle.dumps(md))


@dcp_case(
    "dcp-corrupt-nowhere-stored",
    "corrupt",
    "index-disagrees",
    "nothing says where a chunk is",
    blame=["layers.0.bias"],
    also=["incomplete"],
)
def _(d):
    put_dcp(d, weights(313), 2, edit=lambda md: md.storage_data.pop(MetadataIndex("layers.0.bias", torch.Size([8]))))


@dcp_case("dcp-corrupt-wrong-offset", "corrupt", "bad-offsets", "the map is off by eight bytes", blame=["__0_0.distcp"])
def _(d):
    put_dcp(d, weights(314), 2, edit=lambda md: setattr(_first(md), "offset", _first(md).offset + 8))


@dcp_case(
    "dcp-corrupt-rank-file-empty",
    "corrupt",
    "empty-file",
    "a rank file that the map needs has no bytes",
    blame=["__1_0.distcp"],
    also=["incomplete"],
)
def _(d):
    put_dcp(d, weights(315), 2)
    put(d / "__1_0.distcp", b"")


@dcp_case("dcp-corrupt-rank-file-zeros", "corrupt", "zeroed-region", "a rank file is nothing but zeros", blame=["__1_0.distcp"])
def _(d):
    put_dcp(d, weights(316), 2)
    zero(d / "__1_0.distcp", 0, (d / "__1_0.distcp").stat().st_size)


@dcp_case("dcp-corrupt-tail-zeroed", "corrupt", "zeroed-region", "the last 2 KiB of a rank file are zeros", blame=["__1_0.distcp"])
def _(d):
    put_dcp(d, weights(316), 2)
    zero(d / "__1_0.distcp", (d / "__1_0.distcp").stat().st_size - 2048, 2048)


@dcp_case("dcp-corrupt-rank-file-html", "corrupt", "not-a-checkpoint", "an error page instead of a rank file", blame=["__1_0.distcp"])
def _(d):
    put_dcp(d, weights(317), 2)
    put(d / "__1_0.distcp", "<html>502</html>" * 2000)


@dcp_case("dcp-corrupt-rank-files-swapped", "corrupt", "mixed-save", "the files of two ranks changed places", blame=["distcp"])
def _(d):
    put_dcp(d, {"a": torch.ones(5, 3), "b": torch.ones(7)}, 2)
    (d / "__0_0.distcp").rename(d / "x")
    (d / "__1_0.distcp").rename(d / "__0_0.distcp")
    (d / "x").rename(d / "__1_0.distcp")


@dcp_case("dcp-corrupt-metadata-cut", "corrupt", "truncated", ".metadata is cut", blame=[".metadata"])
def _(d):
    put_dcp(d, weights(318), 2)
    cut(d / ".metadata", 0.7)


@dcp_case("dcp-corrupt-metadata-empty", "corrupt", "empty-file", ".metadata has no bytes", blame=[".metadata"], also=["incomplete"])
def _(d):
    put_dcp(d, weights(319), 2)
    put(d / ".metadata", b"")


@dcp_case("dcp-corrupt-metadata-other-object", "corrupt", "bad-header", ".metadata holds a list", blame=[".metadata"])
def _(d):
    put_dcp(d, weights(320), 2)
    put(d / ".metadata", pickle.dumps([1, 2, 3]))


@dcp_case(
    "dcp-hostile-path-climbs-out", "hostile", "path-traversal", "the map names a file above the folder", blame=["../_outside/donor.pt"]
)
def _(d):
    put_dcp(d, weights(321), 2, edit=lambda md: setattr(_first(md), "relative_path", f"../{OUTSIDE}/donor.pt"))


@dcp_case("dcp-hostile-path-absolute", "hostile", "path-traversal", "the map names an absolute path", blame=["/etc/hostname"])
def _(d):
    put_dcp(d, weights(322), 2, edit=lambda md: setattr(_first(md), "relative_path", "/etc/hostname"))


@dcp_case(
    "dcp-hostile-object-chunk", "hostile", "code-execution", "the payload is in a stored object, the map is clean", blame=["__0_0.distcp"]
)
def _(d):
    put_dcp(d, weights(323), 2, objects={"callbacks": shell_payload()})


@dcp_case("dcp-hostile-link-out", "hostile", "symlink-outside", "a rank file is a link out of the folder", blame=["__1_0.distcp"])
def _(d):
    put_dcp(d, weights(324), 2)
    (d / "__1_0.distcp").unlink()
    (d / "__1_0.distcp").symlink_to(f"../{OUTSIDE}/donor.pt")


@dcp_case("dcp-ok-run-with-link", "ok", "symlink-inside", "a run folder whose latest is a link to a step", target=".")
def _(d):
    put_dcp(d / "step_10", weights(325), 2)
    put_dcp(d / "step_20", weights(326), 2)
    (d / "latest").symlink_to("step_20")


@dcp_case(
    "dcp-ok-unfinished-newer-step",
    "ok",
    "missing-metadata",
    "no pointer; the newest step has no .metadata, the one before is whole",
    target=".",
    also=["warn"],
)
def _(d):
    put_dcp(d / "step_9", weights(327), 2)
    put_dcp(d / "step_10", weights(328), 2, meta=None)


@dcp_case("dcp-ok-side-file", "ok", "stray-file", "a torch file of the data loader beside the rank files")
def _(d):
    put_dcp(d, weights(329), 2)
    put_torch(d / "dataloader.pt", {"position": 12})

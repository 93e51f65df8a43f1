"""More shards with an index, safetensors and torch."""

import json

import torch

from tests.cases.make_cases import OUTSIDE, case, cut, put, put_json, put_st, put_st_shards, put_torch, split, weights


def shards_case(name, verdict, kind, why, **more):
    return case(name, "safetensors-sharded", verdict, kind, why, **more)


# ===== shards


@shards_case("shards-ok-one", "ok", "plain", "an index with a single shard")
def _(d):
    put_st_shards(d, [dict(weights(220))])


@shards_case("shards-ok-variant", "ok", "odd-names", "a variant in the names: model.fp16-00001-of-00002")
def _(d):
    put_st_shards(d, split(weights(221, dtype=torch.float16), 2), stem="model.fp16")


@shards_case("shards-ok-sub-folder", "ok", "odd-names", "the index puts shards in a sub-folder")
def _(d):
    put_st(d / "parts" / "a.safetensors", {"a": torch.ones(2)})
    put_st(d / "parts" / "b.safetensors", {"b": torch.ones(2)})
    put_json(d / "model.safetensors.index.json", {"metadata": {}, "weight_map": {"a": "parts/a.safetensors", "b": "parts/b.safetensors"}})


@shards_case("shards-ok-link-inside", "ok", "symlink-inside", "a shard is a link to a file of the same folder")
def _(d):
    names = put_st_shards(d, split(weights(222), 2))
    (d / "blobs").mkdir()
    (d / names[0]).rename(d / "blobs" / "0a1b")
    (d / names[0]).symlink_to("blobs/0a1b")


@shards_case(
    "shards-ok-wrong-total-size", "ok", "index-disagrees", "total_size counts tied weights twice, as older writers did", also=["warn"]
)
def _(d):
    put_st_shards(d, split(weights(223), 2))
    text = json.loads((d / "model.safetensors.index.json").read_text())
    text["metadata"]["total_size"] *= 2
    put_json(d / "model.safetensors.index.json", text)


@shards_case(
    "shards-warn-unlisted-tensor",
    "warn",
    "index-disagrees",
    "a shard holds a tensor that the index does not name",
    blame=["secret"],
    also=["ok", "corrupt"],
)
def _(d):
    parts = split(weights(224), 2)
    put_st_shards(d, parts)
    put_st(d / "model-00001-of-00002.safetensors", {**parts[0], "secret": torch.ones(1)})


@shards_case("shards-incomplete-no-index", "incomplete", "missing-metadata", "all shards, no index: it comes last", blame=["index.json"])
def _(d):
    put_st_shards(d, split(weights(225), 3))
    (d / "model.safetensors.index.json").unlink()


@shards_case(
    "shards-incomplete-first-missing",
    "incomplete",
    "missing-shard",
    "the first shard is missing",
    blame=["model-00001-of-00003.safetensors"],
)
def _(d):
    put_st_shards(d, split(weights(226), 3), skip=["model-00001-of-00003.safetensors"])


@shards_case(
    "shards-incomplete-dangling-link",
    "incomplete",
    "missing-shard",
    "a shard is a link to a blob that was not fetched",
    blame=["model-00002-of-00002.safetensors"],
)
def _(d):
    put_st_shards(d, split(weights(227), 2), skip=["model-00002-of-00002.safetensors"])
    (d / "model-00002-of-00002.safetensors").symlink_to("blobs/missing")


@shards_case(
    "shards-corrupt-empty-shard",
    "corrupt",
    "empty-file",
    "one shard has no bytes",
    blame=["model-00002-of-00002.safetensors"],
    also=["incomplete"],
)
def _(d):
    names = put_st_shards(d, split(weights(228), 2))
    put(d / names[1], b"")


@shards_case(
    "shards-corrupt-lfs-shard",
    "corrupt",
    "not-a-checkpoint",
    "one shard is a large-file pointer",
    blame=["model-00002-of-00002.safetensors"],
)
def _(d):
    names = put_st_shards(d, split(weights(229), 2))
    put(d / names[1], "version https://git-lfs.github.com/spec/v1\noid sha256:" + "1" * 64 + "\nsize 5\n")


@shards_case("shards-corrupt-index-cut", "corrupt", "truncated", "the index is cut", blame=["model.safetensors.index.json"])
def _(d):
    put_st_shards(d, split(weights(230), 2))
    cut(d / "model.safetensors.index.json", 0.6)


@shards_case(
    "shards-corrupt-index-without-map", "corrupt", "bad-header", "the index has no weight_map", blame=["model.safetensors.index.json"]
)
def _(d):
    put_st_shards(d, split(weights(231), 2))
    put_json(d / "model.safetensors.index.json", {"metadata": {}})


@shards_case(
    "shards-corrupt-index-duplicate", "corrupt", "bad-header", "the index names a tensor twice", blame=["model.safetensors.index.json"]
)
def _(d):
    names = put_st_shards(d, split(weights(232), 2))
    text = (d / "model.safetensors.index.json").read_text()
    put(d / "model.safetensors.index.json", text.replace('"weight_map": {', f'"weight_map": {{"embed.weight": "{names[1]}",'))


@shards_case(
    "shards-corrupt-swapped",
    "corrupt",
    "index-disagrees",
    "two shards changed places",
    blame=["model-00001-of-00002.safetensors"],
    also=["incomplete"],
)
def _(d):
    names = put_st_shards(d, split(weights(233), 2))
    (d / names[0]).rename(d / "x")
    (d / names[1]).rename(d / names[0])
    (d / "x").rename(d / names[1])


@shards_case("shards-hostile-absolute", "hostile", "path-traversal", "the index names an absolute path", blame=["/etc/hostname"])
def _(d):
    put_st_shards(d, split(weights(234), 2), index_extra={"stolen": "/etc/hostname"})


@shards_case(
    "shards-hostile-link-out",
    "hostile",
    "symlink-outside",
    "a shard is a link out of the folder",
    blame=["model-00001-of-00002.safetensors"],
)
def _(d):
    names = put_st_shards(d, split(weights(235), 2))
    (d / names[0]).unlink()
    (d / names[0]).symlink_to(f"../{OUTSIDE}/donor.safetensors")


# ===== torch shards with an index


@case("bin-ok-sharded", "torch-sharded", "ok", "plain", "two .bin shards and an index")
def _(d):
    _put_bins(d, 240)


@case(
    "bin-incomplete-shard",
    "torch-sharded",
    "incomplete",
    "missing-shard",
    "one .bin shard is missing",
    blame=["pytorch_model-00002-of-00002.bin"],
)
def _(d):
    _put_bins(d, 241)
    (d / "pytorch_model-00002-of-00002.bin").unlink()


@case(
    "bin-corrupt-tensor-not-in-shard",
    "torch-sharded",
    "corrupt",
    "index-disagrees",
    "the index names a tensor that no shard has",
    blame=["head"],
    also=["incomplete"],
)
def _(d):
    _put_bins(d, 242, {"head": "pytorch_model-00001-of-00002.bin"})


def _put_bins(d, seed, extra=None):
    mapping = dict(extra or {})
    for n, part in enumerate(split(weights(seed), 2)):
        name = f"pytorch_model-{n + 1:05d}-of-00002.bin"
        put_torch(d / name, part)
        mapping.update(dict.fromkeys(part, name))
    put_json(d / "pytorch_model.bin.index.json", {"metadata": {"total_size": 1}, "weight_map": mapping})

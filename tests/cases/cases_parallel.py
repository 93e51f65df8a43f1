"""More DeepSpeed, Megatron, per-rank and opaque folders."""

import argparse
import collections
import json
import os

import torch

from tests.cases.make_cases import (
    OUTSIDE,
    adam_state,
    case,
    cut,
    drop_modules,
    foreign,
    put,
    put_dcp,
    put_deepspeed,
    put_json,
    put_megatron,
    put_megatron_dist,
    put_ranks,
    put_st,
    put_torch,
    rank_payload,
    shell_payload,
    weights,
)

# ===== DeepSpeed


@case("ds-ok-latest-newline", "deepspeed", "ok", "odd-names", "latest ends in a newline and spaces")
def _(d):
    put_deepspeed(d, 501, 100)
    put(d / "latest", "global_step100 \n")


@case("ds-ok-tag-folder-alone", "deepspeed", "ok", "plain", "the tag folder itself is inspected", target="global_step100", also=["warn"])
def _(d):
    put_deepspeed(d, 502, 100)


@case("ds-ok-bf16-prefix", "deepspeed", "ok", "odd-names", "optimizer files carry the bf16_ prefix")
def _(d):
    put_deepspeed(d, 503, 100, prefix="bf16_")


@case("ds-ok-stage-0", "deepspeed", "ok", "missing-part", "stage 0: the optimizer is inside of the model file")
def _(d):
    put_torch(
        d / "global_step7" / "mp_rank_00_model_states.pt",
        {
            "module": weights(504),
            "optimizer": adam_state(weights(504).values(), 7),
            "dp_world_size": 2,
            "mp_world_size": 1,
            "global_steps": 7,
            "ds_config": {"zero_optimization": {"stage": 0}},
        },
    )
    put(d / "latest", "global_step7")


@case("ds-ok-stage-3", "deepspeed", "ok", "plain", "ZeRO stage 3: model states for each rank")
def _(d):
    _stage3(d, 505)


@case("ds-ok-own-tag", "deepspeed", "ok", "odd-names", "a tag that the user chose", also=["warn"])
def _(d):
    put_deepspeed(d, 506, 100).rename(d / "my tag")
    put(d / "latest", "my tag")


@case("ds-ok-two-tags", "deepspeed", "ok", "plain", "two tags; latest names the older one, the newer is not finished", also=["warn"])
def _(d):
    tag = put_deepspeed(d, 507, 200)
    (tag / "zero_pp_rank_1_mp_rank_00_optim_states.pt").unlink()
    put_deepspeed(d, 507, 100)


@case("ds-ok-experts", "deepspeed", "ok", "plain", "mixture of experts: a file for each expert and layer")
def _(d):
    tag = put_deepspeed(d, 508, 100)
    for layer in range(2):
        for expert in range(3):
            put_torch(tag / f"layer_{layer}_expert_{expert}_mp_rank_00_model_states.pt", weights(508 + expert, layers=1))
    put_torch(tag / "expp_rank_0_mp_rank_00_optim_states.pt", {"optimizer": {}})


@case("ds-ok-universal", "deepspeed", "ok", "odd-container", "a universal checkpoint: a folder for each parameter", also=["warn"])
def _(d):
    _universal(d, 509)


@case("ds-ok-pipeline", "deepspeed", "ok", "plain", "pipeline parallel: a file for each layer")
def _(d):
    tag = put_deepspeed(d, 510, 100)
    for layer in (0, 2, 3):
        put_torch(tag / f"layer_{layer:02d}-model_00-model_states.pt", weights(510, layers=1))


@case("ds-ok-skipped-steps", "deepspeed", "ok", "plain", "the optimizer is behind by steps that overflowed")
def _(d):
    tag = put_deepspeed(d, 511, 100)
    for name in sorted(os.listdir(tag)):
        if "optim" in name:
            _set_optimizer_step(tag / name, 97)


@case(
    "ds-warn-leftover-partition",
    "deepspeed",
    "warn",
    "stray-file",
    "partitions of an earlier run on more ranks",
    blame=["zero_pp_rank_3"],
    also=["ok"],
)
def _(d):
    tag = put_deepspeed(d, 512, 100)
    other = put_deepspeed(d / "old", 512, 100, ranks=4, latest=False)
    (other / "zero_pp_rank_3_mp_rank_00_optim_states.pt").rename(tag / "zero_pp_rank_3_mp_rank_00_optim_states.pt")


@case(
    "ds-incomplete-no-latest",
    "deepspeed",
    "incomplete",
    "missing-part",
    "the tag is whole and latest was never written",
    blame=["latest"],
    also=["warn"],
)
def _(d):
    put_deepspeed(d, 513, 100, latest=False)


@case(
    "ds-incomplete-no-model-states", "deepspeed", "incomplete", "missing-part", "optimizer files only", blame=["mp_rank_00_model_states.pt"]
)
def _(d):
    (put_deepspeed(d, 514, 100) / "mp_rank_00_model_states.pt").unlink()


@case(
    "ds-incomplete-no-optimizer", "deepspeed", "incomplete", "missing-part", "stage 2 without any optimizer file", blame=["optim_states.pt"]
)
def _(d):
    tag = put_deepspeed(d, 515, 100)
    for r in range(2):
        (tag / f"zero_pp_rank_{r}_mp_rank_00_optim_states.pt").unlink()


@case(
    "ds-incomplete-stage-3-model",
    "deepspeed",
    "incomplete",
    "missing-shard",
    "stage 3: model states of rank 1 are not there",
    blame=["zero_pp_rank_1_mp_rank_00_model_states.pt"],
)
def _(d):
    (_stage3(d, 516) / "zero_pp_rank_1_mp_rank_00_model_states.pt").unlink()


@case("ds-incomplete-expert", "deepspeed", "incomplete", "missing-shard", "one expert of a layer is not there", blame=["layer_1_expert_1"])
def _(d):
    tag = put_deepspeed(d, 517, 100)
    for layer in range(2):
        for expert in range(3):
            if (layer, expert) != (1, 1):
                put_torch(tag / f"layer_{layer}_expert_{expert}_mp_rank_00_model_states.pt", weights(517, layers=1))


@case(
    "ds-incomplete-universal-moment",
    "deepspeed",
    "incomplete",
    "missing-part",
    "a universal checkpoint lacks one moment",
    blame=["exp_avg_sq.pt"],
)
def _(d):
    tag = _universal(d, 518)
    (tag / "zero" / "layers.0.bias" / "exp_avg_sq.pt").unlink()


@case(
    "ds-corrupt-optimizer-cut",
    "deepspeed",
    "corrupt",
    "truncated",
    "a partition is cut",
    blame=["zero_pp_rank_1_mp_rank_00_optim_states.pt"],
)
def _(d):
    cut(put_deepspeed(d, 519, 100) / "zero_pp_rank_1_mp_rank_00_optim_states.pt", 0.5)


@case(
    "ds-corrupt-partition-empty",
    "deepspeed",
    "corrupt",
    "empty-file",
    "a partition has no bytes",
    blame=["zero_pp_rank_1_mp_rank_00_optim_states.pt"],
    also=["incomplete"],
)
def _(d):
    put(put_deepspeed(d, 520, 100) / "zero_pp_rank_1_mp_rank_00_optim_states.pt", b"")


@case(
    "ds-corrupt-model-of-other-step",
    "deepspeed",
    "corrupt",
    "mixed-save",
    "the model states are of another step than the tag",
    blame=["mp_rank_00_model_states.pt"],
    also=["incomplete"],
)
def _(d):
    tag = put_deepspeed(d, 521, 100)
    other = put_deepspeed(d / "other", 521, 90, latest=False)
    (other / "mp_rank_00_model_states.pt").replace(tag / "mp_rank_00_model_states.pt")


@case(
    "ds-corrupt-partition-of-other-step",
    "deepspeed",
    "corrupt",
    "mixed-save",
    "one partition is of another step",
    blame=["zero_pp_rank_1_mp_rank_00_optim_states.pt"],
    also=["incomplete"],
)
def _(d):
    tag = put_deepspeed(d, 522, 100)
    _set_optimizer_step(tag / "zero_pp_rank_1_mp_rank_00_optim_states.pt", 90)


@case("ds-corrupt-latest-empty", "deepspeed", "corrupt", "empty-file", "latest has no bytes", blame=["latest"], also=["incomplete"])
def _(d):
    put_deepspeed(d, 523, 100)
    put(d / "latest", b"")


@case("ds-hostile-latest-climbs-out", "deepspeed", "hostile", "path-traversal", "latest names a folder above", blame=["latest"])
def _(d):
    put_deepspeed(d, 524, 100)
    put(d / "latest", f"../{OUTSIDE}")


@case(
    "ds-hostile-partition",
    "deepspeed",
    "hostile",
    "code-execution",
    "an optimizer partition calls os.system",
    blame=["zero_pp_rank_0_mp_rank_00_optim_states.pt"],
)
def _(d):
    put_torch(put_deepspeed(d, 525, 100) / "zero_pp_rank_0_mp_rank_00_optim_states.pt", {"optimizer_state_dict": shell_payload()})


@case(
    "ds-hostile-tag-link-out",
    "deepspeed",
    "hostile",
    "symlink-outside",
    "the tag folder is a link out of the run",
    blame=["global_step100"],
)
def _(d):
    put(d / "latest", "global_step100")
    put(d / "zero_to_fp32.py", "#\n")
    (d / "global_step100").symlink_to(f"../{OUTSIDE}")


def _set_optimizer_step(path, step):
    obj = torch.load(path, weights_only=False)
    obj["optimizer_state_dict"]["base_optimizer_state"]["state"][0]["step"] = step
    put_torch(path, obj)


def _stage3(d, seed):
    tag = d / "global_step100"
    config = {"zero_optimization": {"stage": 3}}
    for r in range(2):
        put_torch(
            tag / f"zero_pp_rank_{r}_mp_rank_00_model_states.pt",
            {"module": {}, "dp_world_size": 2, "mp_world_size": 1, "global_steps": 100, "ds_config": config, "param_shapes": []},
        )
        put_torch(
            tag / f"zero_pp_rank_{r}_mp_rank_00_optim_states.pt",
            {
                "optimizer_state_dict": {"zero_stage": 3, "partition_count": 2, "fp32_flat_groups": [torch.ones(8) * seed]},
                "ds_config": config,
            },
        )
    put(d / "latest", "global_step100")
    return tag


def _universal(d, seed):
    tag = d / "global_step100_universal"
    for name, t in weights(seed).items():
        for part in ("fp32", "exp_avg", "exp_avg_sq"):
            put_torch(tag / "zero" / name / f"{part}.pt", {"param": t})
    put_torch(
        tag / "mp_rank_00_model_states.pt",
        {"module": {}, "dp_world_size": 2, "mp_world_size": 1, "global_steps": 100, "ds_config": {"zero_optimization": {"stage": 1}}},
    )
    put(d / "latest_universal", "global_step100_universal")
    return tag


# ===== Megatron


@case("mg-ok-release", "megatron", "ok", "odd-names", "the tracker says release, a legal value", also=["warn"])
def _(d):
    put_megatron(d, 540, 0, name="release", tracker="release")


@case("mg-ok-tracker-newline", "megatron", "ok", "odd-names", "the tracker ends in a newline", also=["warn"])
def _(d):
    put_megatron(d, 541, 100, tracker="100\n")


@case(
    "mg-ok-iteration-folder-alone",
    "megatron",
    "ok",
    "plain",
    "the iteration folder itself is inspected",
    target="iter_0000100",
    also=["warn"],
)
def _(d):
    put_megatron(d, 542, 100, tp=2)


@case("mg-ok-distributed", "megatron", "ok", "plain", "the distributed format, whole", also=["warn"])
def _(d):
    put_megatron_dist(d, 543, 120)


@case("mg-ok-pipeline", "megatron", "ok", "plain", "two by two model-parallel ranks", also=["warn"])
def _(d):
    _pipeline(d, 544)


@case(
    "mg-ok-newer-unfinished",
    "megatron",
    "ok",
    "missing-metadata",
    "the tracker says 100; iteration 200 is being written beside it",
    also=["warn"],
)
def _(d):
    put_megatron_dist(d, 545, 200, meta=None)
    put_megatron_dist(d, 545, 100)


@case(
    "mg-incomplete-rank",
    "megatron",
    "incomplete",
    "missing-shard",
    "training used two tensor-parallel ranks, one is here",
    blame=["mp_rank_01"],
)
def _(d):
    folder = put_megatron(d, 546, 100, tp=2)
    (folder / "mp_rank_01" / "model_optim_rng.pt").unlink()
    (folder / "mp_rank_01").rmdir()


@case("mg-incomplete-pipeline-rank", "megatron", "incomplete", "missing-shard", "a pipeline rank is not there", blame=["mp_rank_01_001"])
def _(d):
    folder = _pipeline(d, 547)
    (folder / "mp_rank_01_001" / "model_optim_rng.pt").unlink()
    (folder / "mp_rank_01_001").rmdir()


@case("mg-incomplete-no-common", "megatron", "incomplete", "missing-part", "common.pt is not there", blame=["common.pt"])
def _(d):
    (put_megatron_dist(d, 548, 120) / "common.pt").unlink()


@case("mg-incomplete-no-metadata-json", "megatron", "incomplete", "missing-part", "metadata.json is not there", blame=["metadata.json"])
def _(d):
    (put_megatron_dist(d, 549, 120) / "metadata.json").unlink()


@case(
    "mg-incomplete-no-tracker",
    "megatron",
    "incomplete",
    "missing-part",
    "the folder is whole and the tracker was never written",
    blame=["latest_checkpointed_iteration.txt"],
    also=["warn"],
)
def _(d):
    put_megatron_dist(d, 550, 120)
    (d / "latest_checkpointed_iteration.txt").unlink()


@case("mg-corrupt-rank-cut", "megatron", "corrupt", "truncated", "the file of a rank is cut", blame=["mp_rank_01/model_optim_rng.pt"])
def _(d):
    cut(put_megatron(d, 551, 100, tp=2) / "mp_rank_01" / "model_optim_rng.pt", 0.5)


@case(
    "mg-corrupt-rank-of-other-iteration",
    "megatron",
    "corrupt",
    "mixed-save",
    "one rank is of iteration 90",
    blame=["mp_rank_01/model_optim_rng.pt"],
    also=["incomplete"],
)
def _(d):
    folder = put_megatron(d, 552, 100, tp=2)
    other = put_megatron(d / "other", 552, 90, tp=2)
    (other / "mp_rank_01" / "model_optim_rng.pt").replace(folder / "mp_rank_01" / "model_optim_rng.pt")


@case(
    "mg-corrupt-common-of-other-iteration",
    "megatron",
    "corrupt",
    "mixed-save",
    "common.pt is of iteration 110",
    blame=["common.pt"],
    also=["incomplete"],
)
def _(d):
    folder = put_megatron_dist(d, 553, 120)
    put_torch(folder / "common.pt", {"args": argparse.Namespace(seed=1), "iteration": 110})


@case(
    "mg-corrupt-tracker-garbage",
    "megatron",
    "corrupt",
    "bad-header",
    "the tracker holds neither a number nor release",
    blame=["latest_checkpointed_iteration.txt"],
    also=["incomplete"],
)
def _(d):
    put_megatron(d, 554, 100, tracker="1e2\x00")


@case("mg-corrupt-metadata-json-cut", "megatron", "corrupt", "truncated", "metadata.json is cut", blame=["metadata.json"])
def _(d):
    cut(put_megatron_dist(d, 555, 120) / "metadata.json", 0.5)


@case("mg-hostile-args", "megatron", "hostile", "code-execution", "args calls os.system", blame=["model_optim_rng.pt"])
def _(d):
    folder = put_megatron(d, 556, 100)
    put_torch(folder / "mp_rank_00" / "model_optim_rng.pt", {"args": shell_payload(), "iteration": 100})


@case("mg-hostile-common", "megatron", "hostile", "code-execution", "common.pt calls os.system", blame=["common.pt"])
def _(d):
    put_torch(put_megatron_dist(d, 557, 120) / "common.pt", {"args": shell_payload(), "iteration": 120})


def _pipeline(d, seed):
    folder = d / "iter_0000100"
    args = argparse.Namespace(tensor_model_parallel_size=2, pipeline_model_parallel_size=2, seed=seed)
    for tp in range(2):
        for pp in range(2):
            put_torch(
                folder / f"mp_rank_{tp:02d}_{pp:03d}" / "model_optim_rng.pt",
                {"args": args, "iteration": 100, "model": weights(seed + tp * 2 + pp, layers=1)},
            )
    put(d / "latest_checkpointed_iteration.txt", "100")
    return folder


# ===== per-rank files


@case("ranks-ok-other-spelling", "rank-shards", "ok", "odd-names", "model_rank_0.pth without zeros in front")
def _(d):
    for r in range(3):
        put_torch(d / f"model_rank_{r}.pth", rank_payload(560, r, 3, 10))


@case("ranks-ok-two-families", "rank-shards", "ok", "odd-names", "model and optimizer apart, the world size in the names")
def _(d):
    for r in range(2):
        put_torch(d / f"model_world_size_2_rank_{r}.pt", weights(561 + r))
        put_torch(d / f"optim_world_size_2_rank_{r}.pt", adam_state(weights(561 + r).values(), 3))


@case("ranks-ok-safetensors", "rank-shards", "ok", "odd-container", "rank files in safetensors")
def _(d):
    for r in range(2):
        put_st(d / f"rank_{r:05d}.safetensors", dict(weights(562 + r)))


@case("ranks-ok-nothing-said", "rank-shards", "ok", "plain", "files say nothing about step, rank and world")
def _(d):
    for r in range(2):
        put_torch(d / f"rank_{r:05d}.pt", weights(563 + r))


@case("ranks-ok-legacy-container", "rank-shards", "ok", "old-container", "rank files in the old stream")
def _(d):
    for r in range(2):
        put_torch(d / f"rank_{r:05d}.pt", rank_payload(564, r, 2, 5), _use_new_zipfile_serialization=False)


@case("ranks-ok-hard-links", "rank-shards", "ok", "odd-names", "two names of one file elsewhere in the folder", also=["warn"])
def _(d):
    put_ranks(d, 565, 2, 100)
    os.link(d / "rank_00000.pt", d / "backup-of-0.pt")


@case("ranks-ok-text-pointer", "rank-shards", "ok", "plain", "latest is a text file that names a step", target=".")
def _(d):
    put_ranks(d / "step_100", 566, 2, 100)
    put_ranks(d / "step_200", 566, 2, 200)
    put(d / "latest", "step_100\n")


@case("ranks-ok-mark-in-json", "rank-shards", "ok", "plain", "a commit mark with epoch and step")
def _(d):
    put_ranks(d, 567, 2, 100)
    put_json(d / "_COMMITTED", {"epoch": 3, "step": 100})


@case("ranks-ok-folder-with-newline", "rank-shards", "ok", "odd-names", "a newline and a quote in the folder's name", target="step\n'1'")
def _(d):
    put_ranks(d / "step\n'1'", 568, 2, 1)


@case(
    "ranks-warn-leftover-ranks",
    "rank-shards",
    "warn",
    "stray-file",
    "two ranks now, files of four from an earlier save",
    blame=["rank_00003.pt"],
    also=["ok"],
)
def _(d):
    put_ranks(d, 569, 4, 50)
    put_ranks(d, 569, 2, 100)


@case(
    "ranks-incomplete-last-rank",
    "rank-shards",
    "incomplete",
    "missing-shard",
    "the last of four ranks is not there",
    blame=["rank_00003.pt"],
)
def _(d):
    put_ranks(d, 570, 4, 100, skip=[3])


@case(
    "ranks-incomplete-gap",
    "rank-shards",
    "incomplete",
    "missing-shard",
    "files say nothing, and number 1 is not there",
    blame=["rank_00001.pt"],
)
def _(d):
    for r in (0, 2):
        put_torch(d / f"rank_{r:05d}.pt", weights(571 + r))


@case(
    "ranks-incomplete-dangling-latest",
    "rank-shards",
    "incomplete",
    "dangling-tag",
    "latest is a link to a step that is not there",
    target="latest",
    blame=["step_200"],
    also=["warn"],
)
def _(d):
    put_ranks(d / "step_100", 572, 2, 100)
    (d / "latest").symlink_to("step_200")


@case(
    "ranks-corrupt-empty-rank",
    "rank-shards",
    "corrupt",
    "empty-file",
    "a rank file has no bytes",
    blame=["rank_00001.pt"],
    also=["incomplete"],
)
def _(d):
    put_ranks(d, 573, 2, 100)
    put(d / "rank_00001.pt", b"")


@case(
    "ranks-corrupt-other-world",
    "rank-shards",
    "corrupt",
    "mixed-save",
    "one file says another world size",
    blame=["rank_00001.pt"],
    also=["incomplete"],
)
def _(d):
    put_ranks(d, 574, 3, 100)
    put_torch(d / "rank_00001.pt", rank_payload(574, 1, 8, 100))


@case(
    "ranks-corrupt-same-rank-twice", "rank-shards", "corrupt", "mixed-save", "two files say that they are rank 0", blame=["rank_00001.pt"]
)
def _(d):
    put_ranks(d, 575, 2, 100)
    put_torch(d / "rank_00001.pt", rank_payload(575, 0, 2, 100))


@case("ranks-corrupt-other-run", "rank-shards", "corrupt", "mixed-save", "one file is of another run", blame=["rank_00001.pt"])
def _(d):
    put_ranks(d, 576, 3, 100)
    put_torch(d / "rank_00001.pt", {**rank_payload(576, 1, 3, 100), "run_id": "run-b"})


@case(
    "ranks-corrupt-mark-of-other-step",
    "rank-shards",
    "corrupt",
    "mixed-save",
    "the commit mark is of another step",
    blame=["_COMMITTED"],
    also=["warn"],
)
def _(d):
    put_ranks(d, 577, 2, 100)
    put_json(d / "_COMMITTED", {"epoch": 3, "step": 90})


@case("ranks-hostile-payload", "rank-shards", "hostile", "code-execution", "rank 1 calls os.system", blame=["rank_00001.pt"])
def _(d):
    put_ranks(d, 578, 2, 100)
    put_torch(d / "rank_00001.pt", {**rank_payload(578, 1, 2, 100), "hook": shell_payload()})


@case(
    "ranks-hostile-latest-link-out",
    "rank-shards",
    "hostile",
    "symlink-outside",
    "latest is a link out of the run",
    target="latest",
    blame=["latest"],
)
def _(d):
    put_ranks(d / "step_100", 579, 2, 100)
    (d / "latest").symlink_to(f"../{OUTSIDE}")


@case(
    "ranks-hostile-fifo",
    "rank-shards",
    "hostile",
    "special-file",
    "a rank file is a FIFO: opening it would wait for ever",
    blame=["rank_00001.pt"],
)
def _(d):
    put_ranks(d, 580, 2, 100, skip=[1])
    os.mkfifo(d / "rank_00001.pt")


@case(
    "ranks-corrupt-link-loop",
    "rank-shards",
    "corrupt",
    "symlink-inside",
    "a rank file is a link to itself",
    blame=["rank_00001.pt"],
    also=["hostile", "incomplete"],
)
def _(d):
    put_ranks(d, 581, 2, 100, skip=[1])
    (d / "rank_00001.pt").symlink_to("rank_00001.pt")


# ===== opaque


@case("opaque-ok", "opaque", "ok", "plain", "anything at all, and the commit mark")
def _(d):
    put(d / "state.xyz", b"\x01\x02" * 100)
    put(d / "sub" / "more.data", b"abc")
    put(d / "_COMMITTED", b"")


@case("opaque-ok-json-mark", "opaque", "ok", "plain", "the mark says epoch and step")
def _(d):
    put(d / "state.xyz", b"\x01\x02" * 100)
    put(d / "_COMMITTED", json.dumps({"epoch": 2, "step": 40}))


@case("opaque-hostile-link-out", "opaque", "hostile", "symlink-outside", "a link out of the folder", blame=["state.xyz"])
def _(d):
    put(d / "_COMMITTED", b"")
    (d / "state.xyz").symlink_to(f"../{OUTSIDE}/donor.pt")


@case("opaque-unknown-no-mark", "unknown", "unknown", "missing-part", "files of no known kind, and no mark", also=["incomplete"])
def _(d):
    put(d / "state.xyz", b"\x01\x02" * 100)


@case(
    "nemo-incomplete-unfinished",
    "torch-zip",
    "incomplete",
    "missing-part",
    "NeMo's unfinished mark stands beside the file",
    target="m-last.ckpt",
    blame=["unfinished"],
)
def _(d):
    put_torch(d / "m-last.ckpt", {"state_dict": weights(590)})
    put(d / "m-last-unfinished", b"")


@case("ds-ok-foreign-config", "deepspeed", "ok", "foreign-class", "configuration classes of DeepSpeed and of the script", also=["warn"])
def _(d):
    tag = put_deepspeed(d, 591, 100)
    obj, made = foreign("deepspeed.runtime.zero.config", "ZeroStageEnum", value=2)
    state = torch.load(tag / "mp_rank_00_model_states.pt", weights_only=False)
    state["stage"] = obj
    state["module"] = collections.OrderedDict(state["module"])
    put_torch(tag / "mp_rank_00_model_states.pt", state)
    drop_modules(made)


@case(
    "mg-ok-dcp-without-common",
    "megatron",
    "ok",
    "odd-container",
    "metadata.json says that common data is in the distributed checkpoint",
    also=["warn"],
)
def _(d):
    folder = d / "iter_0000120"
    put_dcp(folder, weights(592), 2)
    put_json(folder / "metadata.json", {"sharded_backend": "fsdp_dtensor", "common_backend": "fsdp_dtensor"})
    put(d / "latest_checkpointed_iteration.txt", "120")

"""More DeepSpeed ZeRO folders."""

import os

import torch

from tests.cases.make_cases import (
    OUTSIDE,
    adam_state,
    case,
    cut,
    put,
    put_deepspeed,
    put_torch,
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

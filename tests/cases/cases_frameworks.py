"""What other frameworks make of the layouts of DeepSpeed, Megatron and torch."""

import collections

import torch

from tests.cases.make_cases import (
    OUTSIDE,
    adam_state,
    case,
    drop_modules,
    foreign,
    put,
    put_dcp,
    put_deepspeed,
    put_json,
    put_megatron,
    put_torch,
    weights,
)

# ===== what other frameworks make of these layouts


@case(
    "verl-ok", "torch-zip", "ok", "plain", "verl: the tracker of Megatron, global_step folders, rank files of two families in a sub-folder"
)
def _(d):
    _verl(d, 595)


@case(
    "verl-incomplete-rank",
    "torch-zip",
    "incomplete",
    "missing-shard",
    "verl: the names say two ranks, the model of one is not there",
    blame=["actor/model_world_size_2_rank_1.pt"],
)
def _(d):
    _verl(d, 596)
    (d / "global_step_10" / "actor" / "model_world_size_2_rank_1.pt").unlink()


def _verl(d, seed):
    for r in range(2):
        put_torch(d / "global_step_10" / "actor" / f"model_world_size_2_rank_{r}.pt", weights(seed + r))
        put_torch(d / "global_step_10" / "actor" / f"optim_world_size_2_rank_{r}.pt", adam_state(weights(seed + r).values(), 3))
    put_torch(d / "global_step_10" / "data.pt", {"position": 1})
    put(d / "latest_checkpointed_iteration.txt", "10")


@case(
    "nemo-ok-folder",
    "dcp",
    "ok",
    "plain",
    "NeMo: the distributed checkpoint is one folder further down",
    target="m--step=100-last",
    also=["warn"],
)
def _(d):
    put_dcp(d / "m--step=100-last" / "weights", weights(597), 2)
    put_torch(d / "m--step=100-last" / "weights" / "common.pt", {"iteration": 100})
    put_json(d / "m--step=100-last" / "weights" / "metadata.json", {"sharded_backend": "torch_dist"})
    put(d / "m--step=100-last" / "context" / "model.yaml", "a: 1\n")


@case("lightning-ok-fsdp", "dcp", "ok", "plain", "Lightning's sharded FSDP: a distributed checkpoint and meta.pt")
def _(d):
    put_dcp(d, weights(598), 2)
    put_torch(d / "meta.pt", {"epoch": 1, "global_step": 10})


@case("lightning-ok-deepspeed", "deepspeed", "ok", "odd-names", "Lightning's DeepSpeed: the tag is called checkpoint")
def _(d):
    put_deepspeed(d, 599, 5).rename(d / "checkpoint")
    put(d / "latest", "checkpoint")


@case("torchtitan-ok", "dcp", "ok", "plain", "torchtitan: step folders without a pointer, ordered by number")
def _(d):
    put_dcp(d / "step-100", weights(600), 2)
    put_dcp(d / "step-90", weights(600), 2)


@case(
    "mg-hostile-tracker-climbs-out",
    "megatron",
    "hostile",
    "path-traversal",
    "the tracker names a folder above",
    blame=["latest_checkpointed_iteration.txt"],
)
def _(d):
    put_megatron(d, 601, 100, tracker=f"../{OUTSIDE}")


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

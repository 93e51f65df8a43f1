"""Numbers in files and in names that nobody can count to."""

from tests.cases.make_cases import case, put, put_dcp, put_torch, weights


@case(
    "ranks-corrupt-world-size-without-end",
    "rank-shards",
    "corrupt",
    "huge-length",
    "a world size of 2**60, which nobody can look for",
    also=["incomplete", "hostile"],
)
def _(d):
    for rank in range(2):
        put_torch(d / f"rank_{rank}.pt", {"model": weights(rank), "rank": rank, "world_size": 1 << 60, "step": 7})


@case(
    "ds-corrupt-ranks-without-end",
    "deepspeed",
    "corrupt",
    "huge-length",
    "the model states claim a hundred thousand by a hundred thousand ranks",
    also=["incomplete", "hostile"],
)
def _(d):
    top = {
        "module": weights(60),
        "dp_world_size": 100_000,
        "mp_world_size": 100_000,
        "global_steps": 5,
        "ds_config": {"zero_optimization": {"stage": 2}},
    }
    put_torch(d / "global_step5" / "mp_rank_00_model_states.pt", top)
    inner = {"partition_count": [10**5000, 100_000], "base_optimizer_state": {"state": {0: {"step": 5}}}}
    put_torch(d / "global_step5" / "zero_pp_rank_0_mp_rank_00_optim_states.pt", {"optimizer_state_dict": inner})
    put(d / "latest", "global_step5")


@case(
    "ds-corrupt-layers-without-end",
    "deepspeed",
    "corrupt",
    "huge-length",
    "a pipeline layer whose name says that it is part 999999999999 of its split",
    also=["incomplete", "hostile"],
)
def _(d):
    put_torch(d / "global_step5" / "mp_rank_00_model_states.pt", {"module": {}, "global_steps": 5})
    put_torch(d / "global_step5" / "layer_01-model_999999999999-model_states.pt", weights(61))
    put(d / "latest", "global_step5")


@case("mg-corrupt-experts-without-end", "megatron", "corrupt", "huge-length", "expert parallelism of 2**60", also=["incomplete", "hostile"])
def _(d):
    import argparse

    args = argparse.Namespace(tensor_model_parallel_size=2, pipeline_model_parallel_size=1, expert_model_parallel_size=1 << 60)
    put_torch(d / "iter_0000005" / "mp_rank_00_000" / "model_optim_rng.pt", {"args": args, "iteration": 5, "model": weights(62)})
    put(d / "latest_checkpointed_iteration.txt", "5")


@case(
    "dcp-incomplete-ranks-without-end",
    "dcp",
    "incomplete",
    "huge-length",
    "a rank file whose name has a rank of a thousand million",
    also=["corrupt", "hostile"],
)
def _(d):
    put_dcp(d, dict(weights(63)), 1, meta="__0.metadata")
    put(d / "__999999999_0.distcp", b"")


@case("dcp-ok-step-is-huge", "dcp", "ok", "odd-object", "an object called step that is a number of five thousand digits", also=["warn"])
def _(d):
    put_dcp(d, dict(weights(64)), 2, objects={"step": 10**5000})

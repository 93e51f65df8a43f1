"""More Megatron folders."""

import argparse

from tests.cases.make_cases import (
    case,
    cut,
    put,
    put_megatron,
    put_megatron_dist,
    put_torch,
    shell_payload,
    weights,
)

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

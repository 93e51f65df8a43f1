"""More Hugging Face Trainer folders, with every way that weights can be stored, and what kills and copies leave of them."""

import json

import torch

from tests.cases.make_cases import (
    adam_state,
    case,
    cut,
    put,
    put_dcp,
    put_deepspeed,
    put_hf,
    put_json,
    put_st,
    put_st_shards,
    put_torch,
    shell_payload,
    split,
    weights,
)


def hf_case(name, verdict, kind, why, **more):
    more.setdefault("target", "checkpoint-200")
    return case(name, "hf-trainer", verdict, kind, why, **more)


def _state(ckpt, step, **more):
    put_json(ckpt / "trainer_state.json", {"global_step": step, "epoch": 1.0, "log_history": [], **more})


@hf_case("hf-ok-sharded-weights", "ok", "plain", "weights in three shards with an index")
def _(d):
    put_hf(d / "checkpoint-200", 401, 200)
    (d / "checkpoint-200" / "model.safetensors").unlink()
    put_st_shards(d / "checkpoint-200", split(weights(401), 3))


@hf_case("hf-ok-adapter", "ok", "plain", "a LoRA adapter instead of the model")
def _(d):
    put_hf(d / "checkpoint-200", 402, 200)
    (d / "checkpoint-200" / "model.safetensors").rename(d / "checkpoint-200" / "adapter_model.safetensors")
    put_json(d / "checkpoint-200" / "adapter_config.json", {"peft_type": "LORA"})


@hf_case("hf-ok-old-bin", "ok", "old-container", "pytorch_model.bin, as before safetensors")
def _(d):
    put_hf(d / "checkpoint-200", 403, 200)
    (d / "checkpoint-200" / "model.safetensors").unlink()
    put_torch(d / "checkpoint-200" / "pytorch_model.bin", weights(403))


@hf_case("hf-ok-fsdp2", "ok", "plain", "FSDP2 sharded: two distributed checkpoints, no config, no training_args")
def _(d):
    c = d / "checkpoint-200"
    put_dcp(c / "pytorch_model_fsdp_0", {f"model.{k}": v for k, v in weights(404).items()}, 2)
    put_dcp(c / "optimizer_0", {f"state.{k}.exp_avg": v for k, v in weights(404).items()}, 2)
    put_torch(c / "scheduler.pt", {"last_epoch": 200})
    for r in range(2):
        put_torch(c / f"rng_state_{r}.pth", {"cpu": torch.ones(4)})
    _state(c, 200)


@hf_case("hf-ok-deepspeed", "ok", "plain", "DeepSpeed inside: latest, a tag, no optimizer.pt")
def _(d):
    c = d / "checkpoint-200"
    put_deepspeed(c, 405, 200, prefix="bf16_")
    put_torch(c / "scheduler.pt", {"last_epoch": 200})
    put_torch(c / "rng_state_0.pth", {"cpu": torch.ones(4)})
    put_torch(c / "rng_state_1.pth", {"cpu": torch.ones(4)})
    put_st(c / "model.safetensors", dict(weights(405)))
    _state(c, 200)


@hf_case("hf-ok-many-random-states", "ok", "plain", "four ranks, four random states", also=["warn"])
def _(d):
    put_hf(d / "checkpoint-200", 406, 200, ranks=4)


@hf_case("hf-ok-not-a-number-in-state", "ok", "non-finite", "the state holds bare NaN, as a diverged run writes", also=["warn"])
def _(d):
    put_hf(d / "checkpoint-200", 407, 200)
    text = (d / "checkpoint-200" / "trainer_state.json").read_text()
    put(d / "checkpoint-200" / "trainer_state.json", text.replace("2.25", "NaN"))


@hf_case(
    "hf-ok-model-only", "ok", "missing-part", "save_only_model: weights and state, nothing to resume from", also=["warn", "incomplete"]
)
def _(d):
    put_hf(d / "checkpoint-200", 408, 200)
    for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):
        (d / "checkpoint-200" / name).unlink()


@hf_case("hf-ok-gradient-scaler", "ok", "plain", "fp16 with skipped steps: the optimizer is three behind", also=["warn"])
def _(d):
    put_hf(d / "checkpoint-200", 409, 200)
    put_torch(d / "checkpoint-200" / "optimizer.pt", adam_state(weights(409).values(), 197))
    put_torch(d / "checkpoint-200" / "scaler.pt", {"scale": 65536.0, "_growth_tracker": 3})


@hf_case("hf-ok-optimizer-begun-anew", "ok", "plain", "optimizer and scheduler were reset on the way", also=["warn"])
def _(d):
    put_hf(d / "checkpoint-200", 410, 200)
    put_torch(d / "checkpoint-200" / "optimizer.pt", adam_state(weights(410).values(), 50))
    put_torch(d / "checkpoint-200" / "scheduler.pt", {"last_epoch": 50})


@hf_case("hf-ok-scheduler-per-process", "ok", "plain", "the scheduler steps once for each of four processes", also=["warn"])
def _(d):
    put_hf(d / "checkpoint-200", 411, 200)
    put_torch(d / "checkpoint-200" / "scheduler.pt", {"last_epoch": 800})


@hf_case("hf-ok-renamed", "ok", "odd-names", "the folder was renamed by a person", target="best model", also=["warn"])
def _(d):
    put_hf(d / "best model", 412, 200)


@hf_case("hf-ok-run-folder", "ok", "plain", "a run folder with three checkpoints, ordered by number and not by text", target=".")
def _(d):
    for step in (90, 100, 1000):
        put_hf(d / f"checkpoint-{step}", 413, step)
    put(d / "README.md", "# run\n")


@hf_case("hf-ok-run-folder-with-final-model", "ok", "plain", "the final model lies beside the checkpoints", target=".", also=["warn"])
def _(d):
    put_hf(d / "checkpoint-200", 414, 200)
    put_st(d / "model.safetensors", dict(weights(414)))
    put_json(d / "config.json", {"a": 1})


@hf_case("hf-ok-newest-unfinished", "ok", "missing-part", "the newest of the run is being written", target=".", also=["warn"])
def _(d):
    put_hf(d / "checkpoint-200", 415, 200)
    put_hf(d / "checkpoint-300", 415, 300)
    (d / "checkpoint-300" / "trainer_state.json").unlink()


@hf_case(
    "hf-ok-temporary-folder", "ok", "stray-file", "a folder tmp-checkpoint-300 of a killed save stands beside", target=".", also=["warn"]
)
def _(d):
    put_hf(d / "checkpoint-200", 416, 200)
    put_st(d / "tmp-checkpoint-300" / "model.safetensors", dict(weights(416)))


@hf_case(
    "hf-incomplete-half-removed",
    "incomplete",
    "missing-part",
    "rotation removed the weights first; the state is still there",
    blame=["model.safetensors"],
)
def _(d):
    put_hf(d / "checkpoint-200", 417, 200)
    (d / "checkpoint-200" / "model.safetensors").unlink()


@hf_case(
    "hf-incomplete-no-scheduler",
    "incomplete",
    "missing-part",
    "scheduler.pt is not there: the optimizer is then not restored either",
    blame=["scheduler.pt"],
    also=["warn"],
)
def _(d):
    put_hf(d / "checkpoint-200", 418, 200)
    (d / "checkpoint-200" / "scheduler.pt").unlink()


@hf_case(
    "hf-warn-random-state-missing",
    "warn",
    "missing-part",
    "the random state of rank 1 of 3 is not there",
    blame=["rng_state_1.pth"],
    also=["incomplete"],
)
def _(d):
    put_hf(d / "checkpoint-200", 419, 200, ranks=3)
    (d / "checkpoint-200" / "rng_state_1.pth").unlink()


@hf_case(
    "hf-incomplete-shard", "incomplete", "missing-shard", "a shard of the weights is not there", blame=["model-00002-of-00003.safetensors"]
)
def _(d):
    put_hf(d / "checkpoint-200", 420, 200)
    (d / "checkpoint-200" / "model.safetensors").unlink()
    put_st_shards(d / "checkpoint-200", split(weights(420), 3), skip=["model-00002-of-00003.safetensors"])


@hf_case(
    "hf-incomplete-fsdp-metadata",
    "incomplete",
    "missing-metadata",
    "the optimizer's distributed checkpoint has no .metadata",
    blame=["optimizer_0/.metadata"],
)
def _(d):
    c = d / "checkpoint-200"
    put_dcp(c / "pytorch_model_fsdp_0", {f"model.{k}": v for k, v in weights(421).items()}, 2)
    put_dcp(c / "optimizer_0", weights(421), 2, meta=None)
    put_torch(c / "scheduler.pt", {"last_epoch": 200})
    put_torch(c / "rng_state_0.pth", {"cpu": torch.ones(4)})
    _state(c, 200)


@hf_case(
    "hf-incomplete-deepspeed-partition",
    "incomplete",
    "missing-shard",
    "a partition of the DeepSpeed tag inside is not there",
    blame=["bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt"],
)
def _(d):
    c = d / "checkpoint-200"
    tag = put_deepspeed(c, 422, 200, prefix="bf16_")
    (tag / "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt").unlink()
    put_torch(c / "rng_state_0.pth", {"cpu": torch.ones(4)})
    _state(c, 200)


@hf_case("hf-corrupt-optimizer-cut", "corrupt", "truncated", "optimizer.pt is cut", blame=["optimizer.pt"])
def _(d):
    put_hf(d / "checkpoint-200", 423, 200)
    cut(d / "checkpoint-200" / "optimizer.pt", 0.5)


@hf_case("hf-corrupt-weights-cut", "corrupt", "truncated", "model.safetensors is cut", blame=["model.safetensors"])
def _(d):
    put_hf(d / "checkpoint-200", 424, 200)
    cut(d / "checkpoint-200" / "model.safetensors", 0.5)


@hf_case(
    "hf-corrupt-optimizer-of-other-step",
    "corrupt",
    "mixed-save",
    "optimizer.pt is of step 100",
    blame=["optimizer.pt"],
    also=["incomplete"],
)
def _(d):
    put_hf(d / "checkpoint-200", 425, 200)
    put_torch(d / "checkpoint-200" / "optimizer.pt", adam_state(weights(425).values(), 100))


@hf_case(
    "hf-corrupt-state-of-other-step",
    "corrupt",
    "mixed-save",
    "trainer_state.json is of step 100",
    blame=["trainer_state.json"],
    also=["incomplete"],
)
def _(d):
    put_hf(d / "checkpoint-200", 426, 200)
    _state(d / "checkpoint-200", 100)


@hf_case(
    "hf-corrupt-state-empty", "corrupt", "empty-file", "trainer_state.json has no bytes", blame=["trainer_state.json"], also=["incomplete"]
)
def _(d):
    put_hf(d / "checkpoint-200", 427, 200)
    put(d / "checkpoint-200" / "trainer_state.json", b"")


@hf_case("hf-corrupt-state-zeros", "corrupt", "zeroed-region", "trainer_state.json is zeros", blame=["trainer_state.json"])
def _(d):
    put_hf(d / "checkpoint-200", 428, 200)
    put(d / "checkpoint-200" / "trainer_state.json", bytes(512))


@hf_case("hf-corrupt-lfs-weights", "corrupt", "not-a-checkpoint", "the weights are a large-file pointer", blame=["model.safetensors"])
def _(d):
    put_hf(d / "checkpoint-200", 429, 200)
    put(d / "checkpoint-200" / "model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")


@hf_case("hf-corrupt-config-cut", "corrupt", "truncated", "config.json is cut", blame=["config.json"])
def _(d):
    put_hf(d / "checkpoint-200", 430, 200)
    cut(d / "checkpoint-200" / "config.json", 0.5)


@hf_case("hf-hostile-training-args", "hostile", "code-execution", "training_args.bin calls os.system", blame=["training_args.bin"])
def _(d):
    put_hf(d / "checkpoint-200", 431, 200)
    put_torch(d / "checkpoint-200" / "training_args.bin", shell_payload())


@hf_case("hf-hostile-random-state", "hostile", "code-execution", "rng_state.pth calls os.system", blame=["rng_state.pth"])
def _(d):
    put_hf(d / "checkpoint-200", 432, 200)
    put_torch(d / "checkpoint-200" / "rng_state.pth", {"python": shell_payload()})


@hf_case("hf-warn-nan-weights", "warn", "non-finite", "NaN in the weights", blame=["layers.0.weight"], also=["corrupt"])
def _(d):
    put_hf(d / "checkpoint-200", 433, 200)
    sd = weights(433)
    sd["layers.0.weight"][0, 0] = float("nan")
    put_st(d / "checkpoint-200" / "model.safetensors", dict(sd))


@case("accelerate-ok-save-state", "safetensors", "ok", "plain", "a folder of accelerate.save_state", also=["warn"])
def _(d):
    put_st(d / "model.safetensors", dict(weights(440, rows=64)))
    put_torch(d / "optimizer.bin", {"state": {}, "param_groups": []})
    put_torch(d / "scheduler.bin", {"last_epoch": 3})
    put_torch(d / "sampler.bin", {"epoch": 1})
    put_torch(d / "random_states_0.pkl", {"step": 3, "torch_manual_seed": torch.ones(3)})


@case(
    "accelerate-corrupt-optimizer-cut", "safetensors", "corrupt", "truncated", "optimizer.bin of accelerate is cut", blame=["optimizer.bin"]
)
def _(d):
    put_st(d / "model.safetensors", dict(weights(441, rows=64)))
    put_torch(d / "optimizer.bin", adam_state(weights(441).values(), 3))
    cut(d / "optimizer.bin", 0.5)


@case(
    "accelerate-hostile-random-states",
    "safetensors",
    "hostile",
    "code-execution",
    "random_states_0.pkl calls os.system",
    blame=["random_states_0.pkl"],
)
def _(d):
    put_st(d / "model.safetensors", dict(weights(442, rows=64)))
    put_torch(d / "random_states_0.pkl", shell_payload())


@case("hub-ok-model-folder", "safetensors", "ok", "plain", "a model as downloaded: weights, tokenizer, configuration, a text")
def _(d):
    put_st(d / "model.safetensors", dict(weights(443)))
    put_json(d / "config.json", {"model_type": "toy"})
    put(d / "tokenizer.json", json.dumps({"version": "1.0"}))
    put(d / "README.md", "# model\n")

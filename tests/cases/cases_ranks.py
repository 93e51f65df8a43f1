"""More per-rank and opaque folders."""

import json
import os

from tests.cases.make_cases import (
    OUTSIDE,
    adam_state,
    case,
    put,
    put_json,
    put_ranks,
    put_st,
    put_torch,
    rank_payload,
    shell_payload,
    weights,
)

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

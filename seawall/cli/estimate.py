"""``seawall estimate``: arithmetic before anything moves."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from seawall.cli.options import ConfigOption, JsonOption
from seawall.cli.output import emit, say
from seawall.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from seawall.estimate.transfer import Link, Load, TransferPlan

app = typer.Typer(no_args_is_help=True, help="Arithmetic before anything moves.")


@app.callback()
def _group() -> None:
    """Keeps `transfer` a subcommand although it is the only one."""


@app.command("transfer")
def transfer(
    rate: Annotated[str, typer.Option("--rate", help="Of the link: 25Gbit/s, or in bytes 3.1GB/s.")],
    size: Annotated[str | None, typer.Option("--size", help="Of the checkpoint: 2.8TB, 2.6TiB. Instead of --run.")] = None,
    there: Annotated[str, typer.Option("--there", help="How much of the size lies there already.")] = "0B",
    files: Annotated[int, typer.Option("--files", help="Files of the checkpoint.", min=1)] = 1,
    codec_ratio: Annotated[
        float, typer.Option("--codec-ratio", help="Stored bytes to plain ones: 0.85 saves 15 %.", min=0.01, max=1.1)
    ] = 1.0,
    round_trip: Annotated[str, typer.Option("--round-trip", help="To the place and back: 80ms.")] = "0s",
    transfers: Annotated[int, typer.Option("--transfers", help="Connections at once.", min=1, max=256)] = 16,
    window: Annotated[str, typer.Option("--window", help="What one connection has on its way at most.")] = "4MiB",
    run: Annotated[str | None, typer.Option("--run", help="Its newest checkpoint, instead of --size.")] = None,
    to: Annotated[str | None, typer.Option("--to", help="With --run: the store that it goes to.")] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """How long a copy takes at a rate and a round trip, and whether all of it or only what is missing is sent. Moves nothing."""
    from seawall.estimate.transfer import Link, plan_transfer
    from seawall.estimate.units import parse_bits_per_second, parse_bytes, parse_seconds

    link = Link(parse_bits_per_second(rate), parse_seconds(round_trip), transfers, parse_bytes(window))
    if (run is None) == (size is None) or (run is None) != (to is None):
        raise UsageError("say what is to be copied", do="either --size, or --run and --to")
    load = _sized(size, there, files, codec_ratio) if size is not None else _of_run(str(run), str(to), config)
    plan = plan_transfer(load, link)
    if json:
        texts = {
            "send_bytes": plan.send_bytes,
            "sealed_bytes": load.sealed_bytes,
            "there_bytes": load.there_bytes,
            "usable_bits_per_second": link.usable_bits_per_second,
        }
        emit({**asdict(plan), "objects": load.objects, **{name: str(number) for name, number in texts.items()}})
    else:
        _show(plan, load, link)
    return 0


def _sized(size: str, there: str, files: int, codec_ratio: float) -> "Load":
    from seawall.estimate.transfer import Load, sealed_size
    from seawall.estimate.units import parse_bytes

    plain, have = parse_bytes(size), parse_bytes(there)
    if have > plain:
        raise UsageError("more is there than there is to copy", where=f"--there {there}", why=f"--size is {size}")
    # How many whole files the part that is there makes; the rest has to be sent anyway.
    return Load(sealed_size(plain, codec_ratio), files, sealed_size(have, codec_ratio), files * have // plain if plain else 0)


def _of_run(run: str, to: str, config: "Path | None") -> "Load":
    from seawall.cli.config import find_config
    from seawall.cli.site import Site
    from seawall.errors import NoSuchCopyError
    from seawall.protect.from_copies import first_sealing
    from seawall.protect.transfer_load import load_of
    from seawall.verify.due import newest_commit

    site = Site(find_config(config))
    view, _ = site.view(run)
    commit = newest_commit(view.state)
    if commit is None:
        raise NoSuchCopyError("the run has no checkpoint yet", where=run, do="`seawall sync` takes the first")
    load = load_of(first_sealing(view, commit, site.places(run)), site.store(to))
    site.close()
    return load


def _show(plan: "TransferPlan", load: "Load", link: "Link") -> None:
    from seawall.estimate.units import bytes_text, rate_text, seconds_text

    say(f"{plan.mode}: {bytes_text(plan.send_bytes)} of {bytes_text(load.sealed_bytes)}, {plan.send_objects} of {load.objects} objects")
    say(f"  time: {seconds_text(plan.seconds)}; the bytes alone at line rate: {seconds_text(plan.line_seconds)}")
    say(f"  all of it: {seconds_text(plan.full_seconds)}; usable rate: {rate_text(link.usable_bits_per_second)}")
    for reason in plan.reasons:
        say(f"  because {reason}" if not reason.startswith("the streams") else f"  note: {reason}")

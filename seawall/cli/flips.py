"""``seawall flips``: how many flipped bits each check misses, measured here and beside theory."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from seawall.cli.options import JsonOption
from seawall.cli.output import emit, say, warn
from seawall.errors import SeawallError

if TYPE_CHECKING:
    from seawall.drills.miss_theory import Expected
    from seawall.drills.missed_detection import Measured, MissReport


def flips(
    trials: Annotated[
        int, typer.Option("--trials", help="Errors of each kind for each CRC; single flips are tried at every bit instead.", min=1)
    ] = 1_000_000,
    recomputed: Annotated[
        int, typer.Option("--recomputed", help="Errors of each kind for SHA-256 and AES-GCM, which are computed anew each time.", min=1)
    ] = 50_000,
    chunk_bytes: Annotated[int, typer.Option("--chunk-bytes", help="Bytes that one CRC is over, 4 KiB to 8 MiB.")] = 1 << 20,
    record_bytes: Annotated[int, typer.Option("--record-bytes", help="Bytes of plaintext in one sealed record, 64 to 8 MiB.")] = 4096,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same errors.", min=0)] = 0,
    json: JsonOption = False,
) -> int:
    """Flip bits and count what each check misses, beside theory and two controls that must miss some. Reads and changes nothing.

    Exit 1 when a count contradicts theory, or a control does not show what it must.
    """
    from seawall.drills.missed_detection import measure

    report = measure(trials=trials, recomputed=recomputed, chunk_bytes=chunk_bytes, record_bytes=record_bytes, seed=seed)
    problems = report.problems
    code = SeawallError.exit_code if problems else 0
    if json:
        emit({**document(report), "problems": problems, "exit_code": code})
        return code
    show(report)
    for problem in problems:
        warn(problem)
    return code


def document(report: "MissReport") -> dict[str, Any]:
    """The object of ``--json``, without what was concluded."""
    from seawall.drills.missed_detection import CONFIDENCE, CONTROLS

    return {
        "seed": report.seed,
        "chunk_bytes": report.chunk_bytes,
        "record_bytes": report.record_bytes,
        "confidence": CONFIDENCE,
        "controls": list(CONTROLS),
        "rows": [_row(row) for row in report.rows],
        "compared": report.compared,
        "disagreements": report.disagreements,
    }


def _row(row: "Measured") -> dict[str, Any]:
    return {
        "check": row.check,
        "errors": row.pattern,
        "trials": row.trials,
        "every_position": row.every_position,
        "missed": row.missed,
        "rate_low": row.low,
        "rate_high": row.high,
        "theory": row.expected.rate,
        "theory_is": row.expected.basis,
        "agrees": row.agrees,
    }


def show(report: "MissReport") -> None:
    """The table for a person."""
    from seawall.drills.missed_detection import CONFIDENCE, CONTROLS

    check = ""
    for row in report.rows:
        if row.check != check:
            check = row.check
            over = f"records of {report.record_bytes}" if check in report.recomputed else f"chunks of {report.chunk_bytes}"
            say(f"{check}, {over} bytes{', a control that must miss some' if check in CONTROLS else ''}")
            say(f"  {'errors':<24} {'trials':>11} {'missed':>9}  {f'rate ({CONFIDENCE:.2%} interval)':<24} theory")
        trials = f"{'all ' if row.every_position else ''}{row.trials}"
        line = f"  {row.pattern:<24} {trials:>11} {row.missed:>9}  {f'{row.low:.3g} to {row.high:.3g}':<24} {_theory(row.expected)}"
        say(line if row.agrees else line + "  CONTRADICTS")
    say(f"the CRCs' tables and CRCs of really flipped bytes agree in {report.compared - report.disagreements} of {report.compared} cases")


def _theory(expected: "Expected") -> str:
    return f"{'' if expected.basis == 'exact' else expected.basis + ' '}{expected.rate:.4g}"

"""``seawall flips``: what it prints, and that a measurement without a working control ends with 1."""

from tests.cli.conftest import Cli

SMALL = ("--trials", "400000", "--recomputed", "50", "--chunk-bytes", "8192", "--record-bytes", "64")


def test_the_numbers_as_one_object(cli: Cli) -> None:
    said = cli("flips", *SMALL, "--seed", "3", "--json")
    assert said.code == 0
    found = said.document
    assert (found["exit_code"], found["problems"], found["disagreements"], found["seed"]) == (0, [], 0, 3)
    assert {row["check"] for row in found["rows"]} > set(found["controls"])
    missed = {row["check"]: sum(r["missed"] for r in found["rows"] if r["check"] == row["check"]) for row in found["rows"]}
    assert {check for check, count in missed.items() if count} == set(found["controls"])
    single = next(row for row in found["rows"] if row["check"] == "CRC-64/NVME" and row["errors"] == "1 flip")
    assert (single["trials"], single["every_position"], single["missed"], single["theory"]) == (8192 * 8, True, 0, 0.0)


def test_the_table_for_a_person(cli: Cli) -> None:
    said = cli("flips", *SMALL)
    assert said.code == 0
    assert "CRC-16, chunks of 8192 bytes, a control that must miss some" in said.out
    assert "all 65536" in said.out and "CONTRADICTS" not in said.out
    assert "agree in 1536 of 1536 cases" in said.out


def test_a_control_that_cannot_show_anything_ends_with_1(cli: Cli) -> None:
    said = cli("flips", "--trials", "100", "--recomputed", "1", "--chunk-bytes", "4096")
    assert said.code == 1
    assert "too few trials: the control CRC-16" in said.err


def test_sizes_that_cannot_be_meant(cli: Cli) -> None:
    said = cli("flips", "--chunk-bytes", "10", "--json")
    assert (said.code, said.document["error"]) == (2, "UsageError")

"""``seawall estimate transfer``: numbers from a size, and from a run whose copy is partly there."""

from tests.cli.conftest import Cli, DemoSite


def test_from_a_size(cli: Cli) -> None:
    said = cli("estimate", "transfer", "--size", "2.8TB", "--rate", "25Gbit/s", "--json")
    assert said.code == 0
    assert (said.document["seconds"], said.document["mode"], said.document["send_bytes"]) == (896.0, "full", "2800000000000")
    assert "14 min 56 s" in cli("estimate", "transfer", "--size", "2.8TB", "--rate", "25Gbit/s").out


def test_the_codec_shortens_it(cli: Cli) -> None:
    said = cli("estimate", "transfer", "--size", "2.8TB", "--rate", "25Gbit/s", "--codec-ratio", "0.75", "--json")
    assert said.document["seconds"] == 672.0


def test_from_a_run(site: DemoSite) -> None:
    sealing = site.commit(10)
    there = site.good("estimate", "transfer", "--run", "gpt", "--to", "c", "--rate", "1bit/s")
    assert there["mode"] == "nothing" and there["sealed_bytes"] == there["there_bytes"]
    # One of its objects lost, one cut: both have to go again.
    folder = site.sealing_folder("c", sealing)
    lost, cut = sorted(folder.glob("file-*.sea"))[:2]
    lost.chmod(0o644)
    cut.chmod(0o644)
    missing = lost.stat().st_size + cut.stat().st_size
    lost.unlink()
    cut.write_bytes(cut.read_bytes()[:-1])
    said = site.good("estimate", "transfer", "--run", "gpt", "--to", "c", "--rate", "1bit/s")
    assert (said["mode"], said["send_objects"], said["send_bytes"]) == ("incremental", 2, str(missing))
    assert said["objects"] == there["objects"]


def test_what_cannot_be_meant(cli: Cli, site: DemoSite) -> None:
    assert cli("estimate", "transfer", "--rate", "1Gbit/s").code == 2
    assert cli("estimate", "transfer", "--size", "1TB", "--there", "2TB", "--rate", "1Gbit/s").code == 2
    assert cli("estimate", "transfer", "--size", "1Tb", "--rate", "1Gbit/s").code == 2
    assert cli("estimate", "transfer", "--size", "1TB", "--rate", "1Gbit").code == 2
    assert site("estimate", "transfer", "--run", "gpt", "--rate", "1Gbit/s").code == 2
    assert site("estimate", "transfer", "--run", "gpt", "--to", "c", "--rate", "1Gbit/s").code == 6

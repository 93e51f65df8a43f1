"""Retention on a real bucket with versions: every version of a copy goes, each by its id, and no marker is left that hides anything."""

import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

from seawall.clock import SystemClock
from seawall.log.identity import identify
from seawall.protect.heal_receipt import next_receipt, read_receipts
from seawall.protect.retention import approve_plan, make_plan, run_plan
from seawall.protect.retention_facts import Site
from seawall.protect.retention_gather import Desk, gather
from seawall.protect.retention_settings import RetentionSettings
from seawall.stores.locate import open_store
from seawall.stores.wrapper import Wrapper
from seawall.testing.seaweedfs import SeaweedFS, client_of
from seawall.verify.certify import certify, proofs_of
from seawall.verify.committed import check_committed
from seawall.verify.levels import AgePolicy, Level
from tests.protect.little_site import RUN, file_site, write_checkpoint

SETTINGS = RetentionSettings(keep_last=1, daily=0, weekly=0, monthly=0, keep_best=0)


class Ahead(Wrapper):
    """A store whose clock is ahead, so that a plan has cooled off."""

    by = timedelta(0)

    def server_time(self) -> Any:
        moment = self.inner.server_time()
        return None if moment is None else moment + self.by


def test_every_version_goes_and_nothing_else(tmp_path: Path, seaweed: SeaweedFS, s3_settings: dict[str, Any]) -> None:
    name = f"retention-{uuid.uuid4().hex[:8]}"
    seaweed.create_bucket(name, versions=True)
    site = file_site(tmp_path, ["c"])
    bucket = Ahead(open_store(f"s3://{name}/p", **s3_settings))
    site.stores["a"] = bucket
    identify(bucket, create=True)
    for step in (100, 200, 300):
        site.sync(write_checkpoint(tmp_path / f"ck{step}", step))
    view = site.view()
    (doomed,) = view.state.steps[200]
    key = f"runs/{RUN}/sealings/{doomed}/file-0.sea"
    # A repair left another version below the one that is read.
    repaired = {"file-0.sea": str(bucket.replace(key, bucket.get(key), bucket.head(key).version).version)}
    sealing, resolve = site.opened("a", doomed)[0], view.state.resolver("writer")
    known = read_receipts(site.place("a"), RUN, view.state.commits[doomed], resolve)
    next_receipt(site.place("a"), sealing, known, repaired, site.keys["writer"], resolve, 4)
    for commit in list(view.state.commits.values()):
        for store in ("a", "c"):
            findings = check_committed(site.stores[store], view, commit, Level.L3, lambda: site.keyring.keys)
            view = certify(
                site.stores["c"], view, proofs_of(findings, commit, site.place(store).id, site.clock), site.keys["verifier"], site.clock
            )
    places = (site.place("a"), site.place("c"))
    sites = tuple(Site(place.id, place.name, place.name, place.name) for place in places)
    desk = Desk(RUN, places[1], places, sites, lambda: site.fresh_view(RUN), SETTINGS, AgePolicy(), SystemClock())
    # A store's Date has whole seconds, so that the last proofs are a moment ahead of it.
    bucket.by = timedelta(seconds=2)
    planned = make_plan(desk, site.keys["operator"])
    assert planned.plan is not None and planned.plan.copies == {(doomed, place.id) for place in places}, planned.decision
    gathered = gather(desk)
    assert gathered.moment.clock == "a", "the bucket has a clock, the folder has none"
    approve_plan(desk, gathered.view, gathered.moment, planned.plan.name, site.keys["operator"])
    bucket.by = timedelta(hours=25)
    done = run_plan(desk, planned.plan.name, site.keys["operator"], transfers=4)
    assert done.stopped == () and done.count("deleted") == 2, done.copies
    client = client_of(seaweed.endpoint, seaweed.keys)
    listed = client.list_object_versions(Bucket=name, Prefix=f"p/runs/{RUN}/sealings/")
    assert not listed.get("DeleteMarkers")
    left = {version["Key"].split("/")[4] for version in listed["Versions"]}
    assert left == set(view.state.commits) - {doomed}
    assert not list(site.stores["c"].list(f"runs/{RUN}/sealings/{doomed}/"))
    bucket.close()

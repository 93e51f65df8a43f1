"""The integrity page over HTTP, from Airflow's whole API server: who may see and change what, and what it says when something is wrong."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest

from seawall.plugins.copy_html import copy_body
from seawall.plugins.heat import SIGNS
from seawall.plugins.integrity_html import integrity_body
from seawall.verify.matrix import Dimension
from tests.airflow.long_run import LongRun, receipt_of, write_long_run
from tests.airflow.served import Served, running_server
from tests.protect.command_line import RUN, Desk, new_desk

CHECKPOINTS = 250
PAGE = "/seawall/integrity"
API = f"/seawall/api/runs/{RUN}/integrity"


@pytest.fixture(scope="module")
def served(database: None) -> Iterator[Served]:
    with running_server() as served:
        yield served


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return new_desk(tmp_path_factory.mktemp("integrity"))


@pytest.fixture(scope="module")
def run(desk: Desk) -> LongRun:
    run = write_long_run(desk, CHECKPOINTS, datetime.now(UTC) - timedelta(minutes=5))
    desk("log hold", RUN, "--reason", "a GPU gave wrong sums")
    return run


@pytest.fixture(autouse=True)
def configured(desk: Desk, run: LongRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__SEAWALL__CONFIG", str(desk.config))


def damaged(run: LongRun) -> int:
    """A checkpoint whose copy in c is damaged."""
    return next(number for number in range(run.count) if run.damaged(number) and run.begun(number) < run.now - timedelta(days=3))


def test_the_run_in_numbers(served: Served, run: LongRun) -> None:
    page = served.get(API, "viewer").json()
    assert (page["total"], page["checkpoints"], page["matching"], len(page["copies"]), len(page["moments"])) == (500, 250, 500, 50, 14)
    assert (page["freshness"], page["required_level"], page["problems"]) == ("proved", "L3", [])
    assert set(page["counts"]) == {"worst", *(dimension.value for dimension in Dimension)}
    assert all(sum(counts.values()) == 500 for counts in page["counts"].values())
    newest = run.step(max(number for number in range(run.count) if not run.odd(number)))
    assert (page["recovery_point"]["step"], page["recovery_point"]["level"]) == (newest, "L4")
    assert [mark["reason"] for mark in page["held"]] == ["a GPU gave wrong sums"]
    assert page["quarantines_total"] == sum(run.odd(number) for number in range(run.count))
    row = page["copies"][0]
    assert (row["step"], row["store"], row["history"][-1]) == (run.step(run.count - 1), "a", row["verdict"])
    assert row["history"][0] is None, "it was not there a fortnight ago"


def test_pages_and_filters(served: Served, run: LongRun) -> None:
    every = [row for offset in range(0, 500, 200) for row in served.get(f"{API}?limit=200&offset={offset}", "viewer").json()["copies"]]
    assert len({(row["sealing"], row["store"]) for row in every}) == 500
    assert [row["step"] for row in every] == sorted((row["step"] for row in every), reverse=True)
    failed = served.get(f"{API}?verdict=failed&dimension=file", "viewer").json()
    assert {row["step"] for row in failed["copies"]} == {row["step"] for row in every if row["cells"]["file"]["verdict"] == "failed"}
    assert failed["matching"] == failed["counts"]["file"]["failed"] > 0
    some = served.get(f"{API}?step=1000-1200", "viewer").json()
    assert [row["step"] for row in some["copies"]] == [1200, 1200, 1100, 1100, 1000, 1000]
    one = served.get(f"{API}?sealing={run.sealing(7)}", "viewer").json()
    assert [(row["step"], row["store"]) for row in one["copies"]] == [(run.step(7), "a"), (run.step(7), "c")]
    assert "No copy is like that" in served.get(f"{PAGE}?run={RUN}&sealing={'0' * 32}", "viewer").text, "planned and not committed"
    for asked in ("verdict=good", "dimension=taste", "step=seven", "step=-"):
        assert served.get(f"{API}?{asked}", "viewer").status_code == 400, asked
    assert served.get(f"{API}?limit=1000000", "viewer").status_code == 422
    beyond = served.get(f"{API}?offset=100000", "viewer").json()
    assert (beyond["copies"], beyond["matching"]) == ([], 500)


def test_a_damaged_copy_with_its_evidence_and_the_task_that_found_it(served: Served, run: LongRun) -> None:
    number = damaged(run)
    sealing = run.sealing(number)
    copy = served.get(f"{API}/{sealing}/c", "viewer").json()
    cell = copy["copy"]["cells"]["file"]
    assert (cell["verdict"], cell["response"], cell["evidence"]["damage"]) == (
        "failed",
        "heal",
        "file-3.sea: record 17 of 512 is not what was signed",
    )
    assert cell["history"][-3:] == ["failed"] * 3 or cell["history"][-2:] == ["failed"] * 2
    assert "ok" in cell["history"]
    newest = copy["proofs"][0]
    assert (newest["result"], newest["task"]["dag"], newest["task"]["map_index"]) == ("failed", "seawall_verify", number % 16)
    assert (copy["others"], copy["copy"]["level"]) == (["a"], None)
    calls = served.get(API, "viewer").json()["calls"]
    assert {"heal"} == {call["response"] for call in calls if call["sealing"] == sealing}
    assert served.get(f"{API}/{sealing}/b", "viewer").status_code == 404
    assert served.get(f"{API}/{'0' * 32}/a", "viewer").status_code == 404


class Tables(HTMLParser):
    """What a page says to somebody who sees no colours: text and label of each link in a table cell, and the scopes of its heads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[tuple[str, dict[str, str | None], str]] = []
        self.heads: list[str | None] = []
        self.captions = self.tables = 0
        self._open: tuple[str, dict[str, str | None]] | None = None
        self._text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tables += tag == "table"
        self.captions += tag == "caption"
        if tag == "th":
            self.heads.append(given.get("scope"))
        if tag == "a":
            self._open, self._text = (tag, given), ""

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._open is not None:
            self.links.append((self._text, self._open[1], tag))
            self._open = None


@pytest.mark.parametrize("query", ["", "&view=time", "&view=time&dimension=file&verdict=failed", "&verdict=unknown", "&step=1"])
def test_nothing_is_said_by_colour_alone(served: Served, query: str) -> None:
    answer = served.get(f"{PAGE}?run={RUN}{query}", "viewer")
    assert answer.status_code == 200
    page = Tables(answer.text)
    assert page.tables == page.captions > 0
    assert set(page.heads) <= {"col", "row"} and page.heads
    for text, given, _ in page.links:
        names = set((given.get("class") or "").split())
        coloured = {name.removeprefix("v-") for name in names if name.startswith("v-")}
        for verdict in coloured:
            label = given.get("aria-label") or text
            assert SIGNS[verdict] in text and verdict in label, (text, given)


def test_unknown_is_never_green(served: Served) -> None:
    page = served.get(f"{API}?verdict=unknown&limit=200", "viewer").json()
    assert page["copies"]
    for row in page["copies"]:
        assert "unknown" in {cell["verdict"] for cell in row["cells"].values()}
    shown = served.get(f"{PAGE}?run={RUN}&verdict=unknown", "viewer").text
    assert shown.count('class="v-unknown"') >= len(page["copies"][:50])
    style = re.search(r"\.v-unknown \{([^}]*)\}", shown)
    assert style and "--ok" not in style[1]


@pytest.mark.parametrize("name", ["viewer", "someone"])
def test_who_is_no_operator_sees_no_form_and_is_refused(served: Served, name: str) -> None:
    shown = served.get(f"{PAGE}?run={RUN}", name).text
    assert "a GPU gave wrong sums" in shown and 'method="post"' not in shown and "rights of an operator" in shown
    (held,) = served.get(API, "viewer").json()["held"]
    form = {"run": RUN, "operation": held["operation"], "reason": "I say so"}
    answer = served.post(f"{PAGE}/lift", name, data=form)
    assert (answer.status_code, "rights of an operator" in answer.text, "<html" in answer.text) == (403, True, True)
    assert served.post(f"/seawall/api/runs/{RUN}/lift", name, json={"operation": held["operation"], "reason": "no"}).status_code == 403
    assert served.get(API, "viewer").json()["held"] == [held]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "OWN", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "OWN", "Sec-Fetch-Site": "same-site"},
    ],
)
def test_another_site_cannot_lift_with_a_cookie(served: Served, headers: dict[str, str]) -> None:
    (held,) = served.get(API, "viewer").json()["held"]
    form = {"run": RUN, "operation": held["operation"], "reason": "from elsewhere"}
    sent = {name: served.url if value == "OWN" else value for name, value in headers.items()}
    answer = served.post_with_cookie(f"{PAGE}/lift", "admin", sent, form)
    assert answer.status_code == 403 and "Traceback" not in answer.text
    assert served.get(API, "viewer").json()["held"] == [held]


def test_an_operator_lifts_and_the_log_says_who_and_why(served: Served, desk: Desk) -> None:
    desk("log hold", RUN, "--reason", "until the night shift looked")
    held = next(mark for mark in served.get(API, "oper").json()["held"] if mark["reason"] == "until the night shift looked")
    shown = served.get(f"{PAGE}?run={RUN}", "oper").text
    assert f'value="{held["operation"]}"' in shown and 'action="integrity/lift"' in shown
    form = {"run": RUN, "operation": held["operation"], "reason": "they did"}
    answer = served.post_with_cookie(f"{PAGE}/lift", "oper", {"Origin": served.url, "Sec-Fetch-Site": "same-origin"}, form)
    assert answer.status_code == 303
    after = served.get(urljoin(f"{PAGE}/lift", answer.headers["location"]), "oper")
    assert "they did (by oper in Airflow)" in after.text and 'role="status"' in after.text
    assert held["operation"] not in {mark["operation"] for mark in served.get(API, "oper").json()["held"]}
    entry = desk("log show", RUN, "--json").json["shown"][-1]
    assert (entry["kind"], entry["role"], entry["body"]["reason"]) == ("lift", "operator", "they did (by oper in Airflow)")
    again = served.post_with_cookie(f"{PAGE}/lift", "oper", {"Origin": served.url}, form)
    assert again.status_code == 303, "asked twice is asked once"
    assert desk("log show", RUN, "--json").json["shown"][-1] == entry


def test_a_lift_that_makes_no_sense(served: Served) -> None:
    for form, status in (
        ({"operation": "0" * 32, "reason": "none such"}, 404),
        ({"operation": "<script>", "reason": "x"}, 422),
        ({"operation": "0" * 32, "reason": ""}, 422),
        ({"operation": "0" * 32, "reason": "x" * 801}, 422),
        ({"operation": "0" * 32}, 422),
    ):
        answer = served.post(f"{PAGE}/lift", "admin", data={"run": RUN, **form})
        assert answer.status_code == status and "<script>alert" not in answer.text and "Traceback" not in answer.text
        assert "<html" in answer.text and 'href="../integrity?all=1"' in answer.text
    answer = served.post(f"/seawall/api/runs/{RUN}/lift", "admin", json={"operation": "0" * 32, "reason": "x"})
    assert (answer.status_code, answer.json()["error"]) == (404, "NoSuchCopyError")


def test_a_host_without_an_operators_key_lifts_nothing(served: Served, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = desk.config.with_name("reader.toml")
    lines = desk.config.read_text().splitlines()
    reader.write_text("\n".join(line for line in lines if not line.startswith("operator =")))
    monkeypatch.setenv("AIRFLOW__SEAWALL__CONFIG", str(reader))
    page = served.get(API, "admin").json()
    assert page["can_lift"] is False
    shown = served.get(f"{PAGE}?run={RUN}", "admin").text
    assert "has no operator key" in shown and 'method="post"' not in shown
    form = {"run": RUN, "operation": page["held"][0]["operation"], "reason": "try"}
    answer = served.post(f"{PAGE}/lift", "admin", data=form)
    assert (answer.status_code, "no operator key" in answer.text) == (409, True)


def test_a_store_of_copies_that_is_away_is_named_and_the_page_goes_on(served: Served, desk: Desk) -> None:
    assert served.get(API, "viewer").json()["problems"] == []
    other = "c" if coordination(desk) == "a" else "a"
    away = desk.store(other).with_name("away")
    desk.store(other).rename(away)
    try:
        page = served.get(API, "viewer").json()
        assert page["problems"] and f"store {other}" in page["problems"][0]
        assert page["total"] == 500
        assert served.get(f"{PAGE}?run={RUN}", "viewer").status_code == 200
    finally:
        away.rename(desk.store(other))


def test_a_copy_that_is_gone_is_named_before_the_next_proof_tells(served: Served, desk: Desk, run: LongRun) -> None:
    receipt = receipt_of(desk, run, run.count - 1, "a")
    kept = receipt.read_bytes()
    receipt.unlink()
    try:
        page = served.get(API, "viewer").json()
        assert page["problems"] == [
            f"store a says that it has no copy of step {run.step(run.count - 1)}, which was proved there; verify it now"
        ]
        assert page["score"]["digits"][0]["have"] == 1 and "a: its objects are not there" in page["score"]["digits"][4]["evidence"]
        assert "Store a says that it has no copy" in served.get(f"{PAGE}?run={RUN}", "viewer").text
    finally:
        receipt.write_bytes(kept)
    assert served.get(API, "viewer").json()["problems"] == []


def test_the_score_of_the_recovery_point(served: Served) -> None:
    page = served.get(API, "viewer").json()
    score = page["score"]
    assert (score["step"], score["score"], score["ok"]) == (page["recovery_point"]["step"], "2-1-1-0-0", False)
    assert [digit["ok"] for digit in score["digits"]] == [False, False, True, False, True]
    shown = served.get(f"{PAGE}?run={RUN}", "viewer").text
    assert "2-1-1-0-0" in shown and "3 of the 5 rules do not hold" in shown


def test_a_coordination_store_that_is_away_makes_everything_unknown(served: Served, desk: Desk) -> None:
    folder = desk.store(coordination(desk))
    away = folder.with_name("away")
    folder.rename(away)
    try:
        answer = served.get(f"{PAGE}?run={RUN}", "viewer")
        assert answer.status_code in (502, 503)
        assert "unknown, and neither good nor bad" in answer.text and "<dt>Next</dt>" in answer.text
        assert "Traceback" not in answer.text and "v-ok" not in answer.text.split("<main>")[1]
        assert served.get(API, "viewer").json()["outcome"] in ("transient", "permanent")
    finally:
        away.rename(folder)
    assert served.get(f"{PAGE}?run={RUN}", "viewer").status_code == 200


def coordination(desk: Desk) -> str:
    found = re.search(r"\[coordination\]\nstore = \"(\w+)\"", desk.config.read_text())
    assert found
    return found[1]


def test_a_run_without_a_checkpoint(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = new_desk(tmp_path / "empty")
    monkeypatch.setenv("AIRFLOW__SEAWALL__CONFIG", str(empty.config))
    answer = served.get(PAGE, "viewer")
    assert answer.status_code == 200 and "Nothing is committed yet" in answer.text and "seawall sync" in answer.text
    assert served.get(f"{PAGE}?all=1", "viewer").text.count(f'href="integrity?run={RUN}"') == 1
    missing = served.get(f"{PAGE}?run=<script>alert(1)</script>", "viewer")
    assert missing.status_code == 400 and "<script>alert" not in missing.text and "&lt;script&gt;alert" in missing.text


def test_what_the_browser_may_do(served: Served) -> None:
    answer = served.get(f"{PAGE}?run={RUN}", "viewer")
    policy = answer.headers["content-security-policy"]
    assert (
        "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'self'" in policy and "form-action 'self'" in policy
    )
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", answer.text), "nothing comes from elsewhere"
    assert answer.headers["cache-control"] == "no-store"


def everywhere(value: Any, evil: str, keep: frozenset[str]) -> Any:
    """A document with another text wherever a store or a person could have put one."""
    if isinstance(value, dict):
        return {key: item if key in keep else everywhere(item, evil, keep) for key, item in value.items()}
    if isinstance(value, list):
        return [everywhere(item, evil, keep) for item in value]
    return evil if isinstance(value, str) else value


def test_what_stores_and_people_said_is_escaped(served: Served, run: LongRun) -> None:
    evil = "\"'><script>alert(1)</script>"
    moments = frozenset({"at", "moments", "committed_at", "lapses_at", "kind"})
    page = everywhere(served.get(f"{API}?limit=200", "viewer").json(), evil, moments)
    page["problems"], page["unknown_verifiers"], page["passed_over"] = [evil], {evil: evil}, [{"step": 1, "sealing": evil, "why": evil}]
    copy = everywhere(served.get(f"{API}/{run.sealing(damaged(run))}/c", "viewer").json(), evil, moments)
    copy["marks"] = page["held"]
    copy["problems"] = [evil]
    for body in (
        integrity_body(page, "now", ""),
        integrity_body(page, "time", evil),
        integrity_body(page, "now", evil, evil),
        copy_body(copy, ""),
    ):
        assert "<script" not in body, body[body.index("<script") - 200 :][:300]
        assert "&lt;script&gt;alert" in body

"""The integrity page in a real Chromium: alone and in Airflow's own frame, by keyboard, in both themes, on a narrow window."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from tests.airflow.browser import MISSING, Browser, open_browser
from tests.airflow.long_run import LongRun, write_long_run
from tests.airflow.served import Served, running_server
from tests.protect.command_line import RUN, Desk, new_desk

pytestmark = [pytest.mark.skipif(bool(MISSING), reason=MISSING), pytest.mark.slow, pytest.mark.timeout(300)]
PAGE = "/seawall/integrity"
HELD = "a GPU gave wrong sums"
_CONTRAST = """
const channel = (value) => { value /= 255; return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4; };
const weights = [0.2126, 0.7152, 0.0722];
const light = (text) => text.match(/[\\d.]+/g).slice(0, 3).reduce((sum, value, at) => sum + weights[at] * channel(Number(value)), 0);
const probe = document.body.appendChild(document.createElement("i"));
const found = {};
for (const [ink, ground] of arguments[0]) {
  probe.style.color = `var(--${ink})`; probe.style.backgroundColor = `var(--${ground})`;
  const style = getComputedStyle(probe), [a, b] = [light(style.color), light(style.backgroundColor)].sort((x, y) => y - x);
  found[`${ink} on ${ground}`] = (a + 0.05) / (b + 0.05);
}
probe.remove();
return found;
"""
_INKS = [
    *((f"{verdict}-ink", verdict) for verdict in ("ok", "suspect", "failed", "stale", "unknown")),
    ("unknown-ink", "unknown-2"), ("text", "ground"), ("text", "raised"), ("quiet", "ground"), ("quiet", "raised"), ("link", "ground"),
    ("bad", "ground"),
]  # fmt: skip


@pytest.fixture(scope="module")
def served(database: None) -> Iterator[Served]:
    with running_server() as served:
        yield served


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return new_desk(tmp_path_factory.mktemp("browser"))


@pytest.fixture(scope="module")
def run(desk: Desk) -> LongRun:
    return write_long_run(desk, 250, datetime.now(UTC) - timedelta(minutes=5))


@pytest.fixture(autouse=True)
def configured(desk: Desk, run: LongRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__SEAWALL__CONFIG", str(desk.config))


@pytest.fixture(scope="module")
def browser(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with open_browser(tmp_path_factory.mktemp("chromium")) as browser:
        browser.open(f"{served.url}/seawall/none")
        browser.cookie("_token", served.token("oper"))
        yield browser


@pytest.fixture(autouse=True)
def window(browser: Browser, served: Served) -> None:
    """As a new tab would be."""
    browser.resize(1400, 1000)
    browser.prefer("light")
    browser.open(f"{served.url}{PAGE}?run={RUN}")
    browser.run("localStorage.clear()")
    browser.open(f"{served.url}{PAGE}?run={RUN}")
    browser.log()


def focused(browser: Browser) -> list[object]:
    """Row and column of the focused link in the table of copies, and whether its focus shows."""
    found = browser.run("""
        const link = document.activeElement, cell = link.closest("td, th"), style = getComputedStyle(link);
        if (!cell || !cell.closest("tbody")) return [null, null, false];
        return [cell.parentElement.sectionRowIndex, cell.cellIndex, style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2];
    """)
    assert isinstance(found, list)
    return found


def test_the_page_breaks_no_rule_of_its_own(browser: Browser, served: Served) -> None:
    for query in ("", "&view=time", "&verdict=failed"):
        browser.open(f"{served.url}{PAGE}?run={RUN}{query}")
        assert browser.run("return document.querySelectorAll('table[data-grid] tbody tr').length") > 7
    assert browser.log() == [], "nothing that the content policy refused, and no error"


def test_a_keyboard_reaches_every_cell(browser: Browser, run: LongRun) -> None:
    browser.run("document.querySelector('#copies').nextElementSibling.querySelector('button').focus()")
    browser.press("Tab")
    assert focused(browser) == [0, 0, True]
    browser.press("ArrowRight", "ArrowDown", "ArrowDown")
    assert focused(browser) == [2, 4, True], "the second link of the third row is the cell of the first dimension"
    browser.press("End")
    assert focused(browser) == [2, 10, True]
    browser.press("Home", "ArrowUp", "ArrowUp", "ArrowUp")
    assert focused(browser) == [0, 0, True], "it stops at the border"
    browser.press("ArrowRight", "Tab")
    assert focused(browser) == [None, None, False], "the table is one stop"
    browser.run("document.querySelector('#copies ~ .scroll td.cell a').focus()")
    browser.press("Enter")
    assert browser.run("return [new URLSearchParams(location.search).get('sealing'), location.hash]") == [
        run.sealing(run.count - 1),
        "#file",
    ]
    assert browser.run("return document.querySelector('section:target h3').textContent").startswith("file")


def test_headings_and_tables_are_what_they_say(browser: Browser) -> None:
    assert browser.run("return document.documentElement.lang") == "en"
    levels = browser.run("return [...document.querySelectorAll('h1, h2, h3')].map((head) => Number(head.tagName[1]))")
    assert levels[0] == 1 and all(after <= before + 1 for before, after in pairwise(levels))
    tree = browser.call("POST", "goog/cdp/execute", cmd="Accessibility.getFullAXTree", params={})["nodes"]
    names = {(node.get("role", {}).get("value"), node.get("name", {}).get("value")) for node in tree if not node.get("ignored")}
    roles = {role for role, _ in names}
    assert {"grid", "rowheader", "columnheader", "gridcell", "navigation", "main"} <= roles | {"main"}
    assert ("link", "lock: ok. no lock is asked for in this store") in names
    assert not [name for role, name in names if role in ("link", "button", "combobox", "textbox") and not name], "each has a name"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_ink_can_be_read(browser: Browser, served: Served, scheme: str) -> None:
    """WCAG 2.2, 1.4.3: at least 4.5 to 1."""
    browser.prefer(scheme)
    browser.open(f"{served.url}{PAGE}?run={RUN}")
    ground = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") is (scheme == "light")
    contrasts = browser.run(_CONTRAST, _INKS)
    assert len(contrasts) == len(_INKS)
    assert {pair: ratio for pair, ratio in contrasts.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("width", [420, 800, 2200])
def test_no_window_is_too_narrow(browser: Browser, served: Served, width: int) -> None:
    browser.resize(width, 900)
    for query in ("", "&view=time"):
        browser.open(f"{served.url}{PAGE}?run={RUN}{query}")
        inside, outside = browser.run("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert inside <= outside, "tables scroll by themselves"


def test_in_airflows_frame(browser: Browser, served: Served, desk: Desk, run: LongRun) -> None:
    """The page as people meet it: Airflow's theme, a lift by its form, and a way out to the task that found the damage."""
    desk("log hold", RUN, "--reason", HELD)
    browser.open(f"{served.url}/plugin/seawall-integrity")
    browser.run("localStorage.theme = 'dark'")
    browser.open(f"{served.url}/plugin/seawall-integrity")
    browser.enter_frame(browser.await_one("iframe"))
    browser.await_one("ul.marks li form")
    assert browser.run("return document.documentElement.dataset.theme") == "dark"
    assert browser.run("return getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    browser.run("parent.localStorage.theme = 'light'")
    browser.await_true("return document.documentElement.dataset.theme === 'light'")

    browser.type(browser.find("ul.marks li form input[name=reason]"), "looked at it, all well")
    browser.click(browser.find("ul.marks li form button"))
    told = browser.await_one("[role=status]")
    assert "looked at it, all well (by oper in Airflow)" in browser.run("return arguments[0].textContent", told)
    assert HELD not in served.get(f"/seawall/api/runs/{RUN}/integrity", "viewer").text

    browser.click(browser.find("ul.calls a"))
    link = browser.await_one("a[data-airflow]")
    browser.click(link)
    browser.leave_frame()
    browser.await_true("return location.pathname.startsWith('/dags/seawall_verify/runs/')")
    assert "/tasks/check/mapped/" in browser.run("return location.pathname")


def test_pictures_for_whoever_wants_to_look(browser: Browser, served: Served, tmp_path: Path) -> None:
    """What a person would see is drawn: neither blank nor one colour."""
    for name, query in (("now", ""), ("time", "&view=time&dimension=file")):
        browser.open(f"{served.url}{PAGE}?run={RUN}{query}")
        browser.picture(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 20_000

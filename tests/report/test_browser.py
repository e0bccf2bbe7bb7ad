"""The published page in a real browser: headless Chromium, on a site that ``asv publish`` wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Dialog, Page, expect, sync_playwright

from loaders import _registry, _words
from loaders._advise.coverage import is_ours
from loaders._report import sets
from loaders._report.page import render as page_of
from loaders._resolution import Calibration
from loaders._rows import Comparison, comparison, total
from loaders._stats import estimate
from loaders._trial.metrics import Metrics
from loaders._trial.record import Record
from tests.conftest import ROOT
from tests.report.chromium import CHROMIUM, QUIET
from tests.report.runs import run_of, write_log
from tests.report.test_publish import make_project, publish
from tests.test_rows import record

pytestmark = pytest.mark.skipif(
    not CHROMIUM, reason="no Chromium to test the page in: `apt-get install chromium`, or name one in CHROMIUM"
)

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
EVIL = """<img src=x onerror=alert(1)>'"&</script><script>alert(2)</script>"""
MIB = 2**20

LOADERS = {
    "load_all": (0.2, 0.5, 20),
    "path_generator": (1.0, 0.0, 20),
    "opencv_pool": (0.62, 0.0, 40),
    "path_generator_pool": (0.6, 0.0, 58),
    "memory_map": (0.3, 0.6, 20),
    "tf1_queue": (0.9, 0.0, 0.5),
    "keras_pydataset_1": (0.5, 0.0, 30),
}
"""For each strategy of ``batching``: seconds an epoch of 160 samples, MiB a sample, and MiB in any case."""
UNREAD = "keras_pydataset_1"
"""Of which no trial read what memory it needs."""


def _batching() -> list[Record]:
    found = []
    for index in range(3):
        for data, count in (("x1", 40), ("x4", 160), ("x16", 640)):
            for name, (seconds, slope, least) in LOADERS.items():
                rough = 0.4 if name == "keras_pydataset_1" else 0.04
                wobble = 1 + rough * ((index * 7 + len(name)) % 3 - 1)
                time = seconds * count / 160 * wobble
                peak = int((least + slope * count) * MIB * wobble)
                metrics = Metrics(
                    epoch_time=time + 0.1,
                    steady_time=time,
                    first_batch_time=0.1 * wobble,
                    throughput=count / time,
                    samples=count,
                    peak_memory=peak,
                    needed_memory=None if name == UNREAD else peak,
                )
                case = {"data": data, "augment": "off"}
                found.append(record(name, index, run="b", question="batching", case=case, metrics=metrics))
    return found


def _calibrating() -> list[Record]:
    """A clock that is off by up to a twentieth, and memory by up to 2 MiB."""
    read = [
        record(
            strategy,
            index,
            run="z",
            question="calibration",
            case={},
            metrics=Metrics(
                epoch_time=truth.get("epoch_time", 0.0) * (1 + 0.05 * index) + 1e-4 * index,
                peak_memory=int(truth.get("peak_memory", 0) + 2 * MIB * index),
            ),
        )
        for index in range(3)
        for strategy, truth in ((each.name, each.truth) for each in _registry.variants("calibration").values())
        if {"epoch_time", "peak_memory"} & set(truth)
    ]
    return [msgspec.structs.replace(each, planned=len(read) // 3) for each in read]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of one machine with failures and skips, one with a run that was replaced, and one with a bad name."""
    project = make_project(tmp_path_factory.mktemp("browser"))
    results = project / "results"
    ended = [
        record("mixed_copy", 0, status="failed", message="ValueError: planted", run="a"),
        record("mixed_tolist", 0, status="skipped", message="not on this system", run="a"),
        record("list_to_list", 0, status="over_budget", message="held 900 MiB", peak=850, run="a"),
    ]
    now = "2026-03-01T00:00:00+00:00"
    write_log(results, [msgspec.structs.replace(each, started=now) for each in [*run_of("a"), *ended, *_batching()]])
    write_log(results, _calibrating())
    write_log(results, run_of("old", "2025-01-01T00:00:00+00:00"), commit="a" * 40)
    rated = [
        msgspec.structs.replace(each, metrics=msgspec.structs.replace(each.metrics, throughput=100.0, samples=100))
        for each in run_of("c")
    ]
    write_log(results, rated, machine="two", tensorflow="2.20")
    write_log(results, [*run_of("d"), record(EVIL, 0, status="failed", message=EVIL, run="d")], machine=EVIL)
    done = publish(project)
    assert done.returncode == 0, done.stdout + done.stderr
    return project / ".asv" / "html"


@pytest.fixture(scope="module")
def batching(site: Path) -> Comparison:
    """What Python makes of the records that the page was made from."""
    first, *_ = sets.collect(site.parents[1] / "results")
    return first.comparisons[0]


@pytest.fixture(scope="module")
def calibration(site: Path) -> Calibration | None:
    first, *_ = sets.collect(site.parents[1] / "results")
    assert first.calibration, "so that something is below resolution"
    return first.calibration


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield launched
        launched.close()


@pytest.fixture
def page(browser: Browser, site: Path) -> Iterator[Page]:
    """The page on a desktop; whatever a test does, nothing may leave the page, go wrong or ask."""
    with _opened(browser, site) as opened:
        yield opened


class _opened:  # noqa: N801 - reads as a function
    def __init__(self, browser: Browser, site: Path, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.page = self.context.new_page()
        self.wrong: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.wrong.append(message.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", self._refuse)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto((site / "comparison.html").as_uri())

    def _refuse(self, dialog: Dialog) -> None:
        self.wrong.append(dialog.message)
        dialog.dismiss()

    def __enter__(self) -> Page:
        return self.page

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.context.close()
        if kind is None:
            assert self.wrong == []
            assert [each for each in self.requests if not each.startswith(("file:", "data:"))] == []


def _section(page: Page, question: str, *, whole: bool = True) -> Any:
    """Go to a question's view and return it; ``whole`` shows all its cases, columns and rows."""
    page.locator("section.set:visible nav.views").get_by_role("link", name=question, exact=True).click()
    section = page.locator("section.comparison:visible")
    if whole:
        section.get_by_label("All figures").check()
        if section.get_by_label("Case").count():
            section.get_by_label("Case").select_option("all")
    return section


def _column(table: Any, heading: str) -> list[str]:
    names = [each.split("\n")[0] for each in table.locator("thead th").all_inner_texts()]
    place = names.index(heading)
    return [row.locator("th, td").nth(place).inner_text() for row in table.locator("tr[data-strategy]:visible").all()]


def test_asvs_index_leads_to_the_page_and_back(browser: Browser, site: Path) -> None:
    # asv's own pages want scripts from elsewhere, and replace themselves by a message where they get none.
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto((site / "index.html").as_uri(), wait_until="domcontentloaded")
    page.locator("#nav-li-comparison a").press("Enter")  # unscripted, they lie over their own navigation
    assert page.url.endswith("comparison.html")
    assert "TensorFlow" in page.title()
    page.get_by_role("link", name="asv's own pages").click()
    assert page.url.split("#")[0].endswith("index.html")
    context.close()


def test_a_click_on_a_heading_sorts_and_what_failed_stays_last(page: Page) -> None:
    table = _section(page, "selection").locator("table.ranking")
    peak = table.get_by_role("button", name="peak memory", exact=True)
    table.get_by_role("button", name="strategy", exact=True).click()  # puts some that failed first
    for direction, first in (("ascending", "24.0 MiB"), ("descending", "1054 MiB")):
        peak.click()
        assert peak.locator("xpath=..").get_attribute("aria-sort") == direction
        cells = [each.split("\n")[0] for each in _column(table, "peak memory")]
        assert cells[0] == first
        assert cells[-2:] == ["–", "–"]
    table.get_by_role("button", name="strategy", exact=True).click()
    names = [each.split("\n")[0] for each in _column(table, "strategy")]
    assert names == sorted(names)
    assert "not measured yet" in table.inner_text()
    assert peak.locator("xpath=..").get_attribute("aria-sort") is None


def test_the_order_of_the_page_is_said_and_a_first_click_on_it_turns_it_round(page: Page) -> None:
    table = _section(page, "selection").locator("table.ranking")
    time = table.locator("th[data-key=time]").first
    assert time.get_attribute("aria-sort") == "ascending"
    first = [each.split("\n")[0] for each in _column(table, "strategy")]
    time.get_by_role("button").click()
    assert time.get_attribute("aria-sort") == "descending"
    turned = [each.split("\n")[0] for each in _column(table, "strategy")]
    assert turned != first
    time.get_by_role("button").click()
    assert [each.split("\n")[0] for each in _column(table, "strategy")] == first


def test_who_compares_or_leaves_out_by_keyboard_stays_where_that_was(page: Page) -> None:
    section = _section(page, "batching")
    row = section.locator("tr[data-strategy=load_all]").first
    row.locator("details summary").first.click()
    for name in ("Compare with it", "Leave it out"):
        button = row.get_by_role("button", name=name)
        button.focus()
        page.keyboard.press("Enter")
        left = "bring back" if name == "Leave it out" else name
        assert page.evaluate("document.activeElement.textContent") == left
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.name") == "filter"


def test_the_keyboard_does_what_the_mouse_does(page: Page) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Go to the results"
    section = _section(page, "selection")
    button = section.locator("table.ranking").get_by_role("button", name="samples")
    button.focus()
    page.keyboard.press("Enter")
    assert button.locator("xpath=..").get_attribute("aria-sort") == "ascending"
    summary = section.locator(".ranking details summary").first
    summary.focus()
    page.keyboard.press("Enter")
    assert "python -m loaders trial selection" in section.locator(".ranking details[open]").inner_text()


def test_a_filter_leaves_the_rows_that_have_its_words(page: Page) -> None:
    section = _section(page, "batching")
    section.get_by_label("Show strategies with").fill("POOL")
    assert section.locator("tr[data-strategy]:visible").count() == 2 * 3
    shown = section.locator("table.ranking tbody tr:visible").count(), section.locator("table.ranking tbody tr").count()
    assert section.locator(".shown").inner_text() == "{} of {} rows shown".format(*shown)
    section.get_by_label("Show strategies with").fill("no such strategy")
    assert section.locator("table.ranking:visible").count() == 0
    section.get_by_label("Show strategies with").fill("")
    assert section.locator("tr[data-strategy]:visible").count() == 21


def _ratios(
    records: list[Record], baseline: str, calibration: Calibration | None, monkeypatch: pytest.MonkeyPatch
) -> list[dict[str, tuple[str, str]]]:
    """Return, for each case, the words that Python has for ratios to another baseline."""
    with monkeypatch.context() as patched:
        patched.setattr(_registry, "baseline", lambda name: _registry.find_variant(name, baseline))
        cases = comparison(records, calibration).cases
    return [
        {
            row.strategy: ("baseline", "baseline")
            if row.strategy == baseline
            else (_words.times(row.ratio), _words.fatter(row.peak_ratio))
            for row in rows
        }
        for _, rows in cases
    ]


@pytest.mark.parametrize("baseline", ["load_all", "opencv_pool", "path_generator"])
def test_ratios_to_another_baseline_are_what_python_computes(
    page: Page, calibration: Calibration | None, baseline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = _section(page, "batching")
    if baseline == "path_generator":  # there and back
        section.get_by_label("Compare with").select_option("load_all")
    section.get_by_label("Compare with").select_option(baseline)
    cases = _ratios(_batching(), baseline, calibration, monkeypatch)
    assert ("below resolution" in str(cases)) == (baseline == "opencv_pool"), "its pool differs by a little"
    assert "rounds would decide" in str(cases)
    measured = section.locator("table.ranking:has(tr[data-strategy])").all()
    for expected, table in zip(cases, measured, strict=True):
        for line in table.locator("tr[data-strategy]").all():
            cells = [line.locator(each).inner_text().replace("\n", " ") for each in (".ratio", ".peak-ratio")]
            assert tuple(cells) == expected[line.get_attribute("data-strategy") or ""]


@pytest.mark.parametrize("epochs", [1, 20, 300])
def test_a_total_over_the_readers_epochs_is_what_python_computes(page: Page, batching: Comparison, epochs: int) -> None:
    section = _section(page, "batching")
    section.get_by_label("Epochs of a total").fill("0")
    section.get_by_label("Epochs of a total").fill(str(epochs))
    _, rows = batching.cases[0]
    table = section.locator("table.ranking").first
    for row in rows:
        expected = estimate([total(each, epochs) for each in row.parts.values()], "ratio")
        cell = table.locator(f"tr[data-strategy={row.strategy}] .total")
        assert cell.inner_text().replace("\n", " ") == _words.estimated(expected, _words.duration)
    words = f"time of {epochs} epoch{'' if epochs == 1 else 's'}"
    assert words in table.locator("thead").inner_text()
    order = section.get_by_label("Rank by").locator("option").all_inner_texts()
    assert {words, f"{words}, largest first"} <= {*order}


def test_the_winner_can_be_copied(page: Page) -> None:
    chooser = page.locator(".chooser:visible")
    chooser.locator(".snippet summary").click()
    chooser.get_by_role("button", name="Copy", exact=True).click()
    chooser.get_by_role("button", name="Copied").or_(chooser.get_by_role("button", name="Selected")).wait_for()


def test_results_of_another_machine_are_picked_and_other_choices_follow(page: Page) -> None:
    page.locator("#others summary").click()
    visible = page.locator("section.set:visible h2")
    assert visible.all_inner_texts() == ["box, A CPU, tiny, photographs, Python 3.11.7, TensorFlow 2.21"]
    page.get_by_label("Machine").select_option("two")
    assert page.get_by_label("TensorFlow").input_value() == "2.20"
    assert visible.all_inner_texts() == ["two, A CPU, tiny, photographs, Python 3.11.7, TensorFlow 2.20"]
    page.get_by_label("Machine").select_option("box")
    assert visible.all_inner_texts() == ["box, A CPU, tiny, photographs, Python 3.11.7, TensorFlow 2.21"]
    page.get_by_label("Commit").select_option("aaaaaaaa")
    assert visible.all_inner_texts()[0].endswith("replaced runs at aaaaaaaa")


def test_a_link_into_a_set_that_is_not_shown_shows_it(page: Page) -> None:
    hidden = page.locator("section.set[data-machine=two] section.comparison").first.get_attribute("id")
    page.evaluate(f"location.hash = {hidden!r}")
    page.locator(f"#{hidden}").wait_for(state="visible")


def test_failures_stand_in_the_ranking_in_words(page: Page) -> None:
    table = _section(page, "selection").locator("table.ranking")
    said = _column(table, "status")
    for words in ("failed: ValueError: planted", "skipped: not on this system", "over budget: held 900 MiB"):
        assert words in said


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_nobody_is_shut_out(browser: Browser, site: Path, width: int, scheme: Any) -> None:
    viewport = {"width": width, "height": 800}
    with _opened(browser, site, viewport=viewport, color_scheme=scheme) as page:
        for view in ("start", "batching", "selection", "claims", "instruments"):
            page.goto(f"{page.url.partition('#')[0]}#{view}")
            page.locator(f".view[data-view={view}]:visible").wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") <= width, "it never scrolls sideways"
            for details in page.locator(".view:visible details:visible").all()[:3]:
                details.locator("summary").first.click()
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            found = Axe().run(page, options={"runOnly": RULES}).response["violations"]
            assert [(each["id"], [node["html"][:200] for node in each["nodes"][:3]]) for each in found] == [], view


def test_a_name_full_of_markup_is_text_and_does_nothing(browser: Browser, site: Path) -> None:
    with _opened(browser, site) as page:
        page.locator("#others summary").click()
        page.get_by_label("Machine").select_option(EVIL)
        section = page.locator("section.set:visible")
        assert section.get_attribute("data-machine") == EVIL
        assert EVIL in section.locator("h2").inner_text()
        selection = _section(page, "selection")
        selection.get_by_label("Compare with").select_option("numpy_to_list")
        assert f"failed: {EVIL}" in _column(selection.locator("table.ranking"), "status")


def test_without_script_and_on_paper_everything_is_there(browser: Browser, site: Path) -> None:
    with _opened(browser, site, java_script_enabled=False) as page:
        assert page.locator("section.set:visible").count() == 4
        assert page.locator(".chooser:visible, .controls:visible, #others:visible, thead button").count() == 0
        assert page.locator(".view").count() == page.locator(".view:visible").count() > 0, "one below the other"
    with _opened(browser, site) as page:
        page.emulate_media(media="print")
        assert page.locator(".chooser:visible, .controls:visible, #others:visible").count() == 0
        assert page.locator("section.set:visible table.ranking").count() > 0


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a page with the project's results, whatever a reader has measured beside them."""
    folder = tmp_path_factory.mktemp("published")
    found = [each for each in sets.collect(ROOT / "results") if is_ours(each.origin.machine)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOADERS_MACHINE", "a-stranger")
        (folder / "comparison.html").write_text(page_of(found), "utf-8")
    return folder


@pytest.mark.slow
def test_a_view_of_what_is_published_fits_on_a_few_screens(browser: Browser, published: Path) -> None:
    """The committed results: seven columns and 4000 px at most, and the answer before any scrolling."""
    with _opened(browser, published) as page:
        names = [each.split("-")[-1] for each in page.locator("section.set:visible .view").evaluate_all(IDS)]
        for name in names:
            page.goto(f"{(published / 'comparison.html').as_uri()}#{name}")
            assert page.evaluate("document.documentElement.scrollHeight") <= 4000, name
            for table in page.locator("table.ranking:visible").all():
                assert table.locator("thead th:visible").count() <= 7, name
        first = json.loads(page.locator(".choices").first.text_content() or "")["choices"][0]
        covers = f"This covers {first['measured']} of {len(first['strategies'])} strategies"
        page.goto(f"{(published / 'comparison.html').as_uri()}#{names[0]}")
        said = page.locator(".besides").first.inner_text()
        able = [each for each in first["strategies"] if each["tier"] == "identical" and not each["problem"]]
        lacks = not all(each["load"] for each in able)
        assert (covers in said, "This covers" in said) == (lacks, lacks), "what could not be used is not missed"
        shown = page.locator("section.set:visible").first.get_attribute("data-machine")
        assert ("These are figures of" in said) == (first["machine"] != shown), "the line above names another machine"
    for width, height in ((1280, 800), (390, 844)):
        with _opened(browser, published, viewport={"width": width, "height": height}) as page:
            advice = page.locator(".advice:visible").bounding_box()
            assert advice
            assert advice["y"] + advice["height"] < height, "the answer is on the first screen"


def _address(page: Page) -> str:
    """What the page says of itself: the driver's own copy lags behind what a script has put there."""
    found: str = page.evaluate("location.href")
    return found


IDS = "(found) => found.map((each) => each.id)"


@pytest.mark.slow
def test_five_tasks_take_three_actions_at_most(browser: Browser, published: Path) -> None:
    """What readers come for, on the committed results: each line with an action counts."""
    with _opened(browser, published) as page:  # 1: which loader for 2 GiB and steps of 20 ms?
        form = page.locator(".chooser form:visible")
        form.get_by_label("Memory for loading").select_option(label="2 GiB")
        form.get_by_label("Duration of a training step").select_option(label="20.0 ms")
        assert "Use " in page.locator(".advice:visible").inner_text()
        # 4: the code of the winner
        page.locator(".snippet:visible summary").click()
        expect(page.locator(".snippet:visible pre")).to_contain_text("def ")  # filled in by an event that follows
        # 5: the same view for a colleague
        page.locator(".chooser:visible button.copy").click()
        address, said = _address(page), page.locator(".advice:visible").inner_text()
    with _opened(browser, published) as page:
        page.goto("about:blank")
        page.goto(address)
        assert page.locator(".advice:visible").inner_text() == said
    with _opened(browser, published) as page:  # 2: does interleave leak?
        page.get_by_role("link", name="read_order", exact=True).first.click()
        assert "interleave holds" in page.locator("p.answer:visible", has_text="Is it a leak?").inner_text()
    with _opened(browser, published) as page:  # 3: what does X cost against Y?
        page.get_by_role("link", name="batching", exact=True).first.click()
        page.locator("section.comparison:visible").get_by_label("Compare with").select_option("tfdata_numpy_function")
        row = page.locator("tr[data-strategy=path_generator_pool]:visible")
        assert "× faster" in row.locator(".ratio").inner_text()


@pytest.mark.slow
def test_the_address_is_the_view(browser: Browser, site: Path) -> None:
    with _opened(browser, site) as page:
        section = _section(page, "batching", whole=False)
        section.get_by_label("Case").select_option("data x4, augment off")
        section.get_by_label("Rank by").select_option("-peak")
        section.get_by_label("Compare with").select_option("load_all")
        section.get_by_label("Show strategies with").fill("path")
        address, said = _address(page), section.inner_text()
    assert "#batching?" in address
    with _opened(browser, site) as page:
        page.goto("about:blank")
        page.goto(address)
        assert page.locator("section.comparison:visible").inner_text() == said
        page.go_back()
        page.go_forward()
        assert page.locator("section.comparison:visible").inner_text() == said
    with _opened(browser, site) as page:
        page.locator("#others summary").click()
        page.get_by_label("Machine").select_option("two")
        page.get_by_label("TensorFlow").select_option("2.20")
        address = _address(page)
        page.goto("about:blank")
        page.goto(address)
        assert page.locator("section.set:visible").get_attribute("data-machine") == "two"


def test_a_strategy_has_an_address_of_its_own(page: Page) -> None:
    row = _section(page, "batching", whole=False).locator("tr[data-strategy=memory_map]:visible")
    row.locator("summary").click()
    row.get_by_role("link", name="Link to it").click()
    address = _address(page)
    page.goto("about:blank")
    page.goto(address)
    shown = page.locator("tr[data-strategy=memory_map]:visible")
    assert shown.count() == 1
    assert "picked" in (shown.get_attribute("class") or "")
    assert "python -m loaders trial batching memory_map" in shown.inner_text()


def test_code_is_in_every_case_with_scripts_and_once_without(page: Page) -> None:
    section = _section(page, "batching")
    rows = section.locator("tr[data-strategy=path_generator]").all()
    assert len(rows) == 3
    for row in rows:
        row.locator("summary").click()
        expect(row.locator("pre")).to_contain_text("def path_generator")


def test_ranks_follow_when_a_strategy_is_left_out(
    page: Page, calibration: Calibration | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ratio to the fastest that is left is what Python says of the ratio to it as a baseline."""
    section = _section(page, "batching", whole=False)
    row = section.locator("tr[data-strategy=load_all]:visible")
    before = section.locator("tr[data-strategy=memory_map]:visible .to-fastest").inner_text()
    row.locator("summary").click()
    row.get_by_role("button", name="Leave it out").click()
    assert section.locator("tr[data-strategy=load_all]:visible").count() == 0
    assert "left out: load_all" in section.locator(".shown").inner_text()
    assert section.locator("tr[data-strategy=memory_map]:visible .to-fastest").inner_text() == "the fastest"
    (expected, *_) = _ratios(_batching(), "memory_map", calibration, monkeypatch)
    for line in section.locator("tr[data-strategy]:visible").all():
        name = line.get_attribute("data-strategy") or ""
        if name != "memory_map":
            assert line.locator(".to-fastest").inner_text().replace("\n", " ") == expected[name][0]
    assert "out=load_all" in _address(page)
    section.get_by_role("button", name="bring back").click()
    assert section.locator("tr[data-strategy=memory_map]:visible .to-fastest").inner_text() == before
    assert section.locator("tr[data-strategy=load_all]:visible").count() == 1


def test_what_is_among_the_best_stays_so_while_the_fastest_is_left(page: Page) -> None:
    """Without correction it would be slower, because something else was left out."""
    section = _section(page, "batching", whole=False)
    before = section.locator("tr[data-strategy]:visible .to-fastest").all_inner_texts()
    names = [each.get_attribute("data-strategy") for each in section.locator("tr[data-strategy]:visible").all()]
    row = section.locator(f"tr[data-strategy={names[-1]}]:visible")
    row.locator("summary").click()
    row.get_by_role("button", name="Leave it out").click()
    assert section.locator("tr[data-strategy]:visible .to-fastest").all_inner_texts() == before[:-1]


def test_ranks_are_numbered_only_in_their_order_and_whole(page: Page) -> None:
    section = _section(page, "batching", whole=False)
    table = section.locator("table.ranking:visible").first

    def number() -> str:
        heading = table.locator("tbody tr[data-strategy]:visible > th").first
        return str(heading.evaluate("each => getComputedStyle(each, '::before').content"))

    assert "counter" in number()
    order = section.get_by_label("Rank by")
    for key, numbered in (("-time", False), ("strategy", False), ("time", True)):
        order.select_option(key)
        assert ("counter" in number()) == numbered, key
    section.get_by_label("Show strategies with").fill("map")
    assert "counter" not in number()


def test_the_fastest_that_is_left_is_the_one_that_python_ranks_first(browser: Browser, tmp_path: Path) -> None:
    """Not who was measured in the fast rounds alone: the machine was half as fast in the first two."""
    seconds = {"load_all": 0.1, "path_generator": 1.0, "memory_map": 0.3, "path_generator_pool": 0.35}
    records = [
        record(
            name,
            index,
            run="b",
            question="batching",
            case={"data": "x16", "augment": "off"},
            metrics=Metrics(epoch_time=time * slow, steady_time=time * slow, samples=640, peak_memory=20 * MIB),
        )
        for index, slow in enumerate((2.0, 2.02, 1.0, 1.01))
        for name, time in seconds.items()
        if index > 1 or name != "path_generator_pool"
    ]
    write_log(tmp_path / "results", records)
    (tmp_path / "comparison.html").write_text(page_of(sets.collect(tmp_path / "results")), "utf-8")
    with _opened(browser, tmp_path) as page:
        section = _section(page, "batching", whole=False)
        row = section.locator("tr[data-strategy=load_all]:visible")
        row.locator("summary").click()
        row.get_by_role("button", name="Leave it out").click()
        assert section.locator("tr[data-strategy=memory_map]:visible .to-fastest").inner_text() == "the fastest"


def test_on_a_phone_a_ranking_is_cards_that_name_their_figures(browser: Browser, site: Path) -> None:
    with _opened(browser, site, viewport={"width": 390, "height": 844}) as page:
        section = _section(page, "batching", whole=False)
        for row in section.locator("tr[data-strategy]:visible").all():
            box = row.bounding_box()
            assert box
            assert box["x"] + box["width"] <= 390
            assert row.evaluate("(each) => each.scrollWidth <= each.clientWidth + 1")
        cell = section.locator("tr[data-strategy=memory_map]:visible .ratio")
        assert cell.get_attribute("data-label") == "against the baseline"
        heard = section.locator("table.ranking:visible").first.aria_snapshot()
        assert "batching, data x16, augment off: identical, fastest first" in heard
        assert "rowheader" in heard, "cards are a table to a screen reader"
        assert heard.index("load_all") < heard.index("memory_map") < heard.index("path_generator_pool")


def test_on_a_phone_what_a_finding_is_about_has_the_whole_width(browser: Browser, site: Path) -> None:
    with _opened(browser, site, viewport={"width": 390, "height": 844}) as page:
        for about in page.locator(".findings tbody th:visible").all():
            box, row = about.bounding_box(), about.locator("..").bounding_box()
            assert box
            assert row
            assert box["width"] > 0.9 * row["width"]
        assert page.locator(".findings tbody th:visible").count()


@pytest.mark.parametrize(
    "broken",
    [
        *("#batching?filter=%E2%8", "#%E2%8", "#nowhere?x=1", "#results", "#?", "#batching?set=x"),
        *("#selection?case=x&baseline=x&sort=x&out=x", "#start?choice=x&memory=x&samples=x"),
    ],
)
def test_a_broken_address_shows_something(browser: Browser, site: Path, broken: str) -> None:
    """Also one from a page with other results: what cannot be chosen here is as without the address."""
    with _opened(browser, site) as page:
        page.goto("about:blank")
        page.goto(f"{(site / 'comparison.html').as_uri()}{broken}")
        assert page.locator(".view:visible").count() == 1
        for field in page.locator(".view:visible select").all():
            assert field.evaluate("field => field.selectedIndex") >= 0
        if broken.startswith("#start"):
            assert page.locator(".view:visible .advice").inner_text()

"""The page's chooser against the rule in Python, in a real browser where there is one."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from markupsafe import Markup
from playwright.sync_api import Page, sync_playwright

from loaders import _words
from loaders._advise import candidates, words
from loaders._advise.choose import Settings, laws_of, reckon
from loaders._report import chooser, page
from loaders._stats import estimate
from tests.advise import golden, made
from tests.report.chromium import CHROMIUM, QUIET

EVIL = """<img src=x onerror=alert(1)>'"&</script><script>alert(2)</script>"""


def _document() -> str:
    """A page with nothing but the chooser, of every golden run."""
    environment = page.templates()
    choices = [golden.choice_of(run) for run in golden.RUNS]
    broken = msgspec.structs.replace(choices[0].candidates[0], problem=f"failed in 1 of 2 trials: {EVIL}")
    others = [msgspec.structs.replace(each, settings=f"A={EVIL}") for each in choices[0].candidates[1:]]
    hostile = msgspec.structs.replace(choices[0], candidates=[broken, *others], case={"augment": EVIL})
    template = environment.get_template("chooser.html.j2")
    section = template.render(set=SimpleNamespace(id="set"), choices=[*choices, hostile])
    constants = page.constants()
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>chooser</title></head><body>'
        f'<section class="set" data-machine="{choices[0].source.machine}">{section}</section>'
        f'<script type="application/json" id="constants">{json.dumps(constants)}</script>'
        f"<script>{Markup(page.part('page.js'))}</script></body></html>"  # noqa: S704 - our own
    )


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    if not CHROMIUM:
        pytest.skip("no Chromium to test the page in: `apt-get install chromium`, or name one in CHROMIUM")
    file: Path = tmp_path_factory.mktemp("chooser") / "page.html"
    file.write_text(_document(), "utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        shown = browser.new_page()
        wrong: list[str] = []
        shown.on("console", lambda message: wrong.append(message.text))
        shown.on("pageerror", lambda error: wrong.append(str(error)))
        shown.goto(file.as_uri())
        yield shown
        browser.close()
    assert wrong == []


def test_the_page_decides_every_golden_case_as_python_does(opened: Page) -> None:
    known = golden.read()
    found: list[dict[str, Any]] = opened.evaluate(
        """([cases, runs]) => {
          const data = JSON.parse(document.querySelector(".choices").textContent);
          const letters = Object.fromEntries(Object.entries(data.kinds).map(([letter, kind]) => [kind, letter]));
          return cases.map(({ run, settings }) => {
            const decided = decisionOf(data, data.choices[runs.indexOf(run)], settings);
            const { recommended, bottleneck, rivals } = decided;
            const kinds = decided.found.map((each) => letters[each.kind]).join("");
            return { run, settings, recommended, bottleneck, rivals: rivals.sort(), kinds };
          });
        }""",
        [msgspec.to_builtins(known), list(golden.RUNS)],
    )
    assert len(found) >= 200
    assert [msgspec.convert(each, golden.Case) for each in found] == known


def _shown() -> Iterator[golden.Case]:
    """Return every thirtieth case, and one whose winner is the simplest of several that keep up with training."""
    yield from golden.read()[::30]
    as_good = chooser.LETTERS["as good"]
    yield next(each for each in golden.read() if each.bottleneck is False and as_good in each.kinds)


@pytest.mark.parametrize("case", list(_shown()), ids=lambda case: case.run)
def test_the_page_shows_what_was_decided(opened: Page, case: golden.Case) -> None:
    opened.get_by_label("Choose a strategy for").select_option(index=list(golden.RUNS).index(case.run))
    for name, place in case.settings.items():
        opened.locator(f"select[name={name}]").select_option(str(place))
    advice = " ".join(opened.locator(".advice, .besides").all_inner_texts())
    assert (
        (f"Use {case.recommended}." in advice)
        if case.recommended
        else re.search(r"No (other )?strategy is certain to fit", advice)
    )
    values = {name: chooser.VALUES[name][place] for name, place in case.settings.items()}
    choice = golden.choice_of(case.run)
    among, source = choice.candidates, choice.source
    settings = msgspec.convert(values, Settings)
    reckoned = reckon(among, settings, laws_of(among))
    picked = opened.locator("tr.picked th")
    assert picked.all_text_contents() == ([case.recommended] if case.recommended else [])
    if case.recommended:
        wait = estimate(list(reckoned.waits[case.recommended].values()), "linear")
        assert _words.duration(wait.value) in advice
        assert _words.enough(reckoned.memory[case.recommended].high) in advice  # type: ignore[union-attr, arg-type]
        decision = reckoned.decide(int(values["memory"]))
        said = [each for each in words._why(decision, reckoned, settings, source, "") if "certain to fit" in each]
        assert len(said) == 1
        assert said[0] in advice, "the command line says the same"
        covers = f"This covers {source.measured} of {source.strategies} strategies; what could be used and is not"
        assert (covers in advice) == (chooser.LETTERS["not measured"] in case.kinds), "a ceiling is not to be used"


def test_the_page_counts_what_closing_an_epoch_takes_as_python_does(opened: Page) -> None:
    choice = golden.choice_of("quiet")
    among = []
    for each in filter(lambda each: each.amounts, choice.candidates):
        *fewer, most = each.amounts
        steady = {index: seconds + 0.3 for index, seconds in most.steady.items()}
        closed = msgspec.structs.replace(most, steady=steady, closing=dict.fromkeys(steady, 0.3))
        among.append(msgspec.structs.replace(each, amounts=[*fewer, closed]))
    embedded = chooser.embedded(msgspec.structs.replace(choice, candidates=among))["strategies"]
    for step, samples in itertools.product((0.0, 0.05), (10_000, 1_000_000)):  # of which a minute is the most
        place = {"samples": chooser.SAMPLES.index(samples)}
        asked = Settings(2**30, step, 32, samples, 20)
        reckoned = reckon(among, asked)
        found = opened.evaluate(
            "([every, asked]) => every.map((each) => waitOf(each, asked)[0])",
            [embedded, {**msgspec.to_builtins(asked), "place": place}],
        )
        for each, wait in zip(embedded, found, strict=True):
            expected = estimate(list(reckoned.waits[each["name"]].values()), "linear").value
            assert wait == pytest.approx(expected, rel=1e-3)


def test_an_answer_from_another_machine_than_the_page_shows_names_it(opened: Page) -> None:
    besides = opened.locator(".besides")
    origin = golden.choice_of(next(iter(golden.RUNS))).source.machine
    opened.get_by_label("Choose a strategy for").select_option(index=1)
    opened.get_by_label("Choose a strategy for").select_option(index=0)
    assert "These are figures of" not in besides.inner_text()
    opened.evaluate("document.querySelector('.set').dataset.machine = 'shown-above'")
    try:
        opened.get_by_label("Choose a strategy for").select_option(index=1)
        opened.get_by_label("Choose a strategy for").select_option(index=0)
        assert besides.inner_text().startswith(f"These are figures of {origin}.")
    finally:
        opened.evaluate(f"document.querySelector('.set').dataset.machine = '{origin}'")


def test_hostile_words_are_words(opened: Page) -> None:
    opened.get_by_label("Choose a strategy for").select_option(index=len(golden.RUNS))
    for name, value in (("memory", chooser.MEMORY.index(2**30)), ("samples", 0)):  # what another test has left
        opened.locator(f"select[name={name}]").select_option(str(value))
    if not opened.locator("table.fitting").is_visible():
        opened.locator(".fits summary").click()
    assert EVIL in opened.locator("table.fitting").inner_text()
    assert f"Its process needs A={EVIL} in its environment." in opened.locator(".advice").inner_text()
    assert opened.locator("table.fitting img").count() == 0


def test_what_is_embedded_is_small_and_whole() -> None:
    (choice,) = candidates.choices(made.run())
    found = chooser.embedded(choice)
    assert len(json.dumps(found)) < 60_000
    most = len(found["answers"])
    assert most == math.prod(map(len, chooser.VALUES.values()))
    assert all(len(each) == len(choice.candidates) + 1 for each in found["table"])


def test_the_defaults_of_page_and_command_are_the_same() -> None:
    from loaders._cli.advise import command

    given = {each.name: each.default for each in command.params}
    assert [str(given[name]) for name in ("memory", "step", "batch", "samples", "epochs")] == [
        "1GiB",
        "50ms",
        "32",
        "10000",
        "20",
    ]
    assert Settings(2**30, 0.05, 32, 10_000, 20) == chooser.DEFAULT
    assert all(sum(is_default for *_, is_default in each) == 1 for each in chooser.options().values())

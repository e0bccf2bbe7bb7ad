from __future__ import annotations

import re
import shutil
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loaders import _evidence, _faults
from loaders._check import equivalence, selftest
from loaders._check.judge import Judgement
from loaders._check.run import Outcome
from loaders._check.selftest import Checked
from loaders._claims import claims
from loaders._evidence import Count, Experiment
from loaders._report import linked, page, sets, svg
from loaders._rows import comparison
from loaders._stats import Estimate
from loaders._trial import log
from loaders._trial.log import PUBLISHED
from loaders._trial.metrics import Disturbance, Metrics
from loaders._trial.record import Environment, Record
from tests.check.pairs import planted
from tests.report.runs import run_of, write_log
from tests.report.test_findings import reads
from tests.test_faults import seen
from tests.test_rows import record

EVIL = """<script>alert("1")</script>'"&<img src=x onerror=alert(2)>"""


class Parsed(HTMLParser):
    """The page's elements, attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        if tag not in {"meta", "img", "br", "input"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.python
def test_the_page_says_what_was_measured(tmp_path: Path) -> None:
    failed = record("mixed_copy", 0, status="over_budget", message="held 900 MiB", peak=850, run="a")
    write_log(tmp_path, [*run_of("a"), failed])
    found = sets.collect(tmp_path)
    html = page.render(found)
    parsed = Parsed(html)
    assert parsed.open == []
    for words in (
        "Selection: draw samples without replacement",
        "Does it matter whether the data and the selection are lists",
        "numpy_to_list",
        "4.00× slower",
        "43.9× fatter",
        "1054 MiB",
        "over budget: held 900 MiB",
        "A CPU, 2 cores, 16 GiB",
        "numpy 9.9",
        "0 of 1",
        "python -m loaders compare selection",
    ):
        assert words in parsed.text, words
    assert "Peak memory ranges from 24.0 MiB (numpy_to_numpy) to 1054 MiB (numpy_to_list)" in parsed.text, (
        "a finding is a caption"
    )
    charts = [attributes for tag, attributes in parsed.elements if tag == "svg" and "role" in attributes]
    assert len(charts) == 2
    assert len([tag for tag, attributes in parsed.elements if tag == "svg"]) > 2, "small bars in cells"
    for chart in charts:
        assert "numpy_to_list: 1" in (chart["aria-label"] or ""), "a chart has a text alternative"


@pytest.mark.python
def test_the_page_is_self_contained_and_runs_its_own_script_only(tmp_path: Path) -> None:
    write_log(tmp_path, run_of("a"))
    html = page.render(sets.collect(tmp_path), home="index.html")
    parsed = Parsed(html)
    assert not {tag for tag, _ in parsed.elements} & {"link", "iframe", "object"}
    assert not {name for _, attributes in parsed.elements for name in attributes if name.startswith("on")}
    assert all((attributes["src"] or "").startswith("data:") for tag, attributes in parsed.elements if tag == "img")
    (policy,) = [each["content"] or "" for tag, each in parsed.elements if tag == "meta" and "http-equiv" in each]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    links = [attributes["href"] or "" for tag, attributes in parsed.elements if tag == "a"]
    assert set(links) >= {"index.html"}
    assert all(link.partition("#")[0] in ("", "index.html") for link in links)
    ids = {attributes["id"] for _, attributes in parsed.elements if "id" in attributes}
    assert {link[1:] for link in links if link.startswith("#")} <= ids
    assert not re.search(r"url\((?!#)", html)
    assert len(html) < 3_000_000


def test_names_full_of_markup_show_as_text(tmp_path: Path) -> None:
    evil = [record(EVIL, 0, time=1.0, run="a"), record("numpy_to_list", 1, status="failed", message=EVIL, run="a")]
    write_log(tmp_path, [*run_of("a", rounds=1), *evil], machine=EVIL)
    parsed = Parsed(page.render(sets.collect(tmp_path)))
    scripts = [attributes for tag, attributes in parsed.elements if tag == "script"]
    kinds = [{"type": "application/json", **name} for name in ({"class": "choices"}, {"id": "constants"})]
    assert [each for each in scripts if each not in kinds] == [{}, {}], "what is not data is our own"
    assert not {tag for tag, _ in parsed.elements} & {"img"}
    assert EVIL in parsed.text
    assert f"failed in 1 of 2: {EVIL}" in parsed.text


def test_what_failed_once_is_never_the_fastest_nor_counted_with_the_others(tmp_path: Path) -> None:
    """The script picks the fastest of what is not set apart."""
    failed = record("numpy_to_list", 9, status="failed", message="ended", run="a")
    write_log(tmp_path, [*run_of("a"), failed])
    parsed = Parsed(page.render(sets.collect(tmp_path)))
    apart = {each["data-strategy"]: each.get("data-apart") for tag, each in parsed.elements if "data-times" in each}
    assert apart == {"numpy_to_numpy": None, "numpy_to_list": "yes"}


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ([{"record": "jpeg", "data": "x16"}, {"record": "jpeg", "data": "x1"}], ""),
        ([{"record": "jpeg", "data": "x16"}, {"record": "tensor", "data": "x16"}], " --all-cases"),
        ([{"record": "tensor", "data": "x16"}], " --case record=tensor"),
        ([{"record": "tensor", "data": "x16"}, {"record": "int64", "data": "x16"}], " --all-cases"),
    ],
)
def test_the_command_that_repeats_a_comparison_measures_its_cases(cases: list[dict[str, str]], said: str) -> None:
    records = [record("range_indexed", 0, time=1.0, question="read_order", case=case) for case in cases]
    assert page.repeat(comparison(records)).partition(" --rounds 1")[2] == said
    full = comparison([msgspec.structs.replace(each, size="full") for each in records])
    assert page.repeat(full).partition(" --rounds 1")[2] == (said or " --default-case")


def test_a_single_sample_is_not_called_no_difference(tmp_path: Path) -> None:
    faster = record("permutation_index", 0, time=0.01, peak=3, run="a")
    write_log(tmp_path, [*run_of("a", rounds=1), faster])
    html = page.render(sets.collect(tmp_path))
    assert "a single sample cannot show a difference" in html
    assert "Time of permutation_index compared" not in html


def test_a_comparison_on_a_busy_machine_says_so(tmp_path: Path) -> None:
    quiet = run_of("a")
    busy = [
        msgspec.structs.replace(
            each, metrics=msgspec.structs.replace(each.metrics, disturbance=Disturbance(others=0.5)), run="b"
        )
        for each in quiet
    ]
    write_log(tmp_path, quiet)
    assert "not quiet" not in page.render(sets.collect(tmp_path))
    write_log(tmp_path, busy)
    said = Parsed(page.render(sets.collect(tmp_path))).text
    assert "The machine was not quiet: in 4 of 4 trials, others used more than 10% of the processor time" in said


def test_a_page_without_results_says_what_to_do(tmp_path: Path) -> None:
    assert "make bench" in Parsed(page.render(sets.collect(tmp_path))).text


def test_the_link_goes_into_asvs_own_navigation() -> None:
    import asv

    index = (Path(asv.__file__).parent / "www" / "index.html").read_text("utf-8")
    assert linked(index).count('<a href="comparison.html">Comparison</a>') == 1


@pytest.mark.parametrize("index", ["", "<ul></ul>"])
def test_an_unknown_navigation_fails_loudly(index: str) -> None:
    from asv.util import UserError

    with pytest.raises(UserError, match="adapt ANCHOR"):
        linked(index)


def test_memory_over_the_steps_is_drawn_and_leads_to_a_cure(tmp_path: Path) -> None:
    write_log(tmp_path, [msgspec.structs.replace(each, run="r", planned=4) for each in reads()])
    parsed = Parsed(page.render(sets.collect(tmp_path)))
    assert "Is it a leak?" in parsed.text
    assert "plateau at 600 MiB, 380 MiB of it held by the allocator" in parsed.text
    charts = [attributes.get("aria-label") or "" for tag, attributes in parsed.elements if tag == "svg"]
    assert any("interleave_mmap_threshold: plateau at 210 MiB" in chart for chart in charts)


def test_the_order_of_reading_is_a_picture_with_words(tmp_path: Path) -> None:
    walked = [
        msgspec.structs.replace(
            each,
            run="r",
            planned=4,
            metrics=msgspec.structs.replace(each.metrics, steps=list(range(1000)), walk=list(range(0, 10_000, 10))),
        )
        for each in reads()
    ]
    write_log(tmp_path, walked)
    parsed = Parsed(page.render(sets.collect(tmp_path)))
    charts = [attributes.get("aria-label") or "" for tag, attributes in parsed.elements if tag == "svg"]
    assert any("interleave: displacement 0.30" in chart for chart in charts)
    pictures = [attributes["href"] or "" for tag, attributes in parsed.elements if tag == "image"]
    assert len(pictures) == 4
    assert all(each.startswith("data:image/png;base64,") for each in pictures)


def test_claims_stand_with_their_verdict_and_rule(tmp_path: Path) -> None:
    write_log(tmp_path, run_of("a"))
    parsed = Parsed(page.render(sets.collect(tmp_path)))
    assert "The mixed form keeps every old array alive: about 1100 MiB." in parsed.text
    assert "undecided here" in parsed.text
    assert "read_order was not run" in parsed.text


def _swept(tmp_path: Path) -> None:
    records = [
        record(
            f"py_function_{at}",
            index,
            run="r",
            planned=4,
            question="python_map",
            case={"work": "array"},
            metrics=Metrics(
                epoch_time=1.0 / int(at),
                peak_memory=int(at) * 44 * 2**20,
                bodies_in_flight=min(2, int(at)),
                waiting=int(at),
                waiting_bytes=int(at) * 40 * 2**20,
            ),
        )
        for index in range(2)
        for at in ("1", "2", "4", "8")
    ]
    write_log(tmp_path, records)


def test_what_really_ran_stands_beside_what_was_asked_for(tmp_path: Path) -> None:
    _swept(tmp_path)
    parsed = Parsed(page.render(sets.collect(tmp_path)))
    said = "py_function_8: 8 requested, 2 in flight; peak memory 352 MiB, against 44.0 MiB at 1"
    assert any(said in (attributes.get("aria-label") or "") for tag, attributes in parsed.elements if tag == "svg")
    assert "8 (320 MiB)" in parsed.text


def test_memory_over_the_data_is_a_chart_and_a_table(tmp_path: Path) -> None:
    records = [
        record(
            strategy,
            index,
            run="r",
            planned=6,
            question="batching",
            case={"data": data, "augment": "off"},
            metrics=Metrics(epoch_time=1.0, samples=count, needed_memory=int((20 + each * count) * 2**20)),
        )
        for index in range(2)
        for strategy, each in (("load_all", 0.5), ("path_generator", 0.0))
        for data, count in (("x1", 40), ("x4", 160), ("x16", 640))
    ]
    write_log(tmp_path, records)
    parsed = Parsed(page.render(sets.collect(tmp_path)))
    assert "load_all needs 512 KiB (512 to 512) more per sample; level: path_generator" in parsed.text


def test_how_often_the_check_is_wrong_is_shown_for_its_machine(tmp_path: Path) -> None:
    write_log(tmp_path, run_of("a"))
    counted = (("box", "A CPU", "nothing"), ("other", "A CPU", "+8 MiB"), ("box", "B", "+10 % of time"))
    for machine, cpu, kind in counted:
        outcome = Outcome(kind, Judgement("no difference", Estimate(1.0, 0.98, 1.02, 8), 1.0, 1.0, 8), None)
        started = f"2026-01-0{2 if cpu == 'B' else 1}T00:00:00+00:00"
        checked = Checked("k", kind, started, outcome, Environment(machine=machine, cpu=cpu))
        path = tmp_path / f"{machine} {cpu}" / selftest.NAME
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(msgspec.json.encode(checked) + b"\n")
    text = Parsed(page.render(sets.collect(tmp_path))).text
    assert "How often the performance check is wrong" in text
    assert "0 (0%)" in text
    assert "+8 MiB" not in text, "another machine's"
    assert "+10 % of time" not in text, "another processor's"


def test_whether_forks_measure_the_same_is_shown_for_its_machine_and_processor(tmp_path: Path) -> None:
    write_log(tmp_path, run_of("a"))
    places = {"box": ("box", "A CPU", "caching"), "other": ("other", "A CPU", "batching"), "x": ("box", "B", "resize")}
    for name, (machine, cpu, question) in places.items():
        environment = Environment(machine=machine, cpu=cpu, python="3.11.7", packages={"numpy": "9.9"}, commit="c" * 40)
        for each in planted({"<s>": 1.3, "t": 1.0}, question=question, environment=environment):
            log.append(tmp_path / name / equivalence.NAME, each)
    parsed = Parsed(page.render(sets.collect(tmp_path)))
    assert "Whether forked trials measure the same as fresh ones" in parsed.text
    assert "caching, steady time: forked trials differ in <s> (+3" in parsed.text
    assert "different" in parsed.text
    assert "commit cccccccc" in parsed.text
    assert "caching: every strategy" in parsed.text
    assert "batching: every strategy" not in parsed.text, "another machine's"
    assert "resize: every strategy" not in parsed.text, "another processor's"
    write_log(tmp_path / "none", run_of("a"))
    assert "forked trials" not in Parsed(page.render(sets.collect(tmp_path / "none"))).text


def test_what_a_fault_does_is_shown_for_its_machine_and_processor(tmp_path: Path) -> None:
    metrics = Metrics(epoch_time=1.0)
    records = [
        record(name, index, run="r", planned=4, question="service", case={"storage": "slow"}, metrics=metrics)
        for index in range(2)
        for name in ("local", "service_2")
    ]
    write_log(tmp_path, records)
    for name, cpu, strategy in (("box", "A CPU", "service_2"), ("other", "B", "service_4")):
        each = seen(strategy=strategy, machine="box", cpu=cpu, ended="failed", message=EVIL, commit="c" * 40)
        log.append(tmp_path / name / _faults.NAME, each)
    html = page.render(sets.collect(tmp_path))
    text = Parsed(html).text
    assert "When something fails, what is documented is kept in 1 of 1 experiment, each of 1 epoch" in text
    assert "commit cccccccc" in text
    assert f"service_2, worker_killed in words: the client is told “{EVIL}”" in text
    assert EVIL not in html
    assert "service_4, worker_killed in words" not in text, "another processor's"
    (found,) = sets.collect(tmp_path)
    assert html.count(f'href="#{found.id}-faults"') == 2, "from the views, and from the question"
    shutil.rmtree(tmp_path / "box")
    write_log(tmp_path, run_of("a"))
    log.append(tmp_path / "box" / _faults.NAME, seen(machine="box", cpu="A CPU"))
    assert "in 1 of 1 experiment" in Parsed(page.render(sets.collect(tmp_path))).text, "though service is not there"
    write_log(tmp_path / "none", records)
    assert "what a fault does" not in Parsed(page.render(sets.collect(tmp_path / "none"))).text


def test_how_often_conclusions_are_wrong_is_shown_for_the_machine_and_its_processor(tmp_path: Path) -> None:
    write_log(tmp_path, run_of("a"))
    for name, cpu, what in (("box", "A CPU", f"missed {EVIL}"), ("box", "B", "strange"), ("other", "A CPU", "strange")):
        count = Count(what, 0.25, 0, 8, "at most", 0)
        each = Experiment(what, "2026-01-02T03:04:05+00:00", "c" * 40, cpu, "box/trials.jsonl", [count])
        log.append(tmp_path / name / _evidence.NAME, each)
    html = page.render(sets.collect(tmp_path))
    text = Parsed(html).text
    line = ["2 of 8", "at most 0%", "no", f"missed {EVIL}, box/trials.jsonl, commit cccccccc, 2026-01-02"]
    assert "".join([f"missed {EVIL}", *line]) in text
    assert f"0 of 1 counts reach their targets; these do not: missed {EVIL}." in text
    assert EVIL not in html
    assert "strange" not in text
    write_log(tmp_path / "none", run_of("a"))
    assert "How often the conclusions" not in Parsed(page.render(sets.collect(tmp_path / "none"))).text


def test_what_an_older_instrument_measured_is_shown_and_concludes_nothing(tmp_path: Path) -> None:
    write_log(tmp_path, [msgspec.structs.replace(each, schema=1) for each in run_of("a")])
    html = page.render(sets.collect(tmp_path))
    text = Parsed(html).text
    assert "These figures come from an older instrument" in text
    assert "no conclusion rests on them" in text
    assert "1054 MiB" in text, "it stays to be looked at"
    assert "Findings" not in text
    assert "Which one for me?" not in text
    assert "What write-ups claim about loading data" not in text
    assert 'data-instrument="older instrument (schema 1)"' in html


def test_two_times_and_three_memories_stand_apart(tmp_path: Path) -> None:
    metrics = Metrics(
        epoch_time=0.9,
        steady_time=0.5,
        start_time=0.123,
        peak_memory=10 * 2**20,
        peak_memory_slow=30 * 2**20,
        needed_memory=20 * 2**20,
        anonymous_memory=20 * 2**20,
        file_memory=7 * 2**20,
    )
    write_log(tmp_path, [record("numpy_to_numpy", index, metrics=metrics, run="a", planned=1) for index in range(2)])
    parsed = Parsed(page.render(sets.collect(tmp_path)))
    headings = ("start", "time of 20 epochs", "with a slow consumer", "needed", "anonymous, file-backed")
    assert all(each in parsed.text for each in headings)
    for figure in ("123 ms", "10.4 s", "10.0 MiB", "30.0 MiB", "20.0 MiB", "20.0 MiB, 7.0 MiB"):
        assert figure in parsed.text
    assert "the system can take the file-backed pages back" in parsed.text
    assert "not corrected for multiple comparisons" in parsed.text


def test_what_is_historic_or_a_ceiling_is_marked(tmp_path: Path) -> None:
    case = {"data": "x16", "augment": "off"}
    names = ("path_generator", "opencv_pool", "tf1_queue")
    write_log(
        tmp_path, [record(each, 0, 1.0, 24, question="batching", case=case, run="a", planned=3) for each in names]
    )
    html = page.render(sets.collect(tmp_path))
    assert "opencv_pool <em>ceiling</em>" in html
    assert "tf1_queue <em>historic</em>" in html
    assert "path_generator <em>" not in html


def test_what_is_not_measured_yet_is_a_row_and_the_headline_says_how_many(tmp_path: Path) -> None:
    write_log(tmp_path, run_of("a"))
    found = sets.collect(tmp_path)
    html = page.render(found)
    parsed = Parsed(html)
    assert parsed.open == []
    missing = found[0].comparisons[0].unmeasured
    assert len(missing) > page.MOST_MISSING, "many share a row, which names them all"
    assert html.count(">not measured yet</td>") == 1
    assert f"{len(missing)} more{', '.join(row.strategy for row in missing)}" in parsed.text
    few = [msgspec.structs.replace(each, unmeasured=each.unmeasured[:3]) for each in found[0].comparisons]
    one_each = page.render([msgspec.structs.replace(found[0], comparisons=few)])
    assert one_each.count(">not measured yet</td>") == 3
    assert "numpy_to_numpy (the baseline) is fastest of the 2 of" in parsed.text
    assert "To measure what is not measured yet: python -m loaders compare selection --size tiny" in parsed.text
    assert "Not in this run" not in parsed.text
    write_log(tmp_path, run_of("b", "2027-01-01T00:00:00+00:00"), commit="b" * 40)
    again = page.render(sets.collect(tmp_path))
    assert again.count(">not measured yet</td>") == 1, "what was replaced is never measured on"
    assert again.count("Not in this run") == 1


def test_a_tier_with_nothing_measured_yet_has_its_table(tmp_path: Path) -> None:
    case = {"scale": "0.5"}
    metrics = Metrics(sample_time=0.1)
    write_log(
        tmp_path,
        [record("skimage_resize_ubyte", 0, question="resize", case=case, metrics=metrics, run="a")],
    )
    parsed = Parsed(page.render(sets.collect(tmp_path)))
    assert parsed.open == []
    assert "Tier: identical output" in parsed.text, "none of these is measured"
    assert "Tier: as typed (the outputs differ)" in parsed.text


def _drawn(machine: str, **peaks: float) -> list[Record]:
    return [
        record(
            name, index, time=1.0, peak=peak + index / 10, run=machine, size="full", started="2026-03-04T05:06:07+00:00"
        )
        for index in range(6)
        for name, peak in peaks.items()
    ]


def test_a_claim_that_was_not_reached_shows_the_published_verdict(tmp_path: Path) -> None:
    write_log(tmp_path, _drawn("p", list_to_list=9, numpy_to_list=900), machine=PUBLISHED)
    write_log(tmp_path, _drawn("q", numpy_to_list=900))
    html = page.render(sets.collect(tmp_path))
    verdict = f'<span class="label">on {PUBLISHED}, 2026-03-04: holds</span>'
    assert html.count(verdict) == 1
    assert html.count(f"on {PUBLISHED}, ") == sum(not each.issue for each in claims()), (
        "the published set does not quote itself"
    )
    ruling = re.search(r"C1<span.*?</tr>", html[html.index(verdict) - 2000 :], re.DOTALL)
    assert ruling is not None
    assert "undecided here" in ruling[0]
    assert "selection list_to_list was not run" in ruling[0]
    measured = [*_drawn("r", list_to_list=9, numpy_to_list=900)]
    write_log(tmp_path, [msgspec.structs.replace(each, started="2027-01-01T00:00:00+00:00") for each in measured])
    assert verdict not in page.render(sets.collect(tmp_path)), "once it is reached, it has its own"


def test_the_page_says_once_why_start_is_missing_and_how_trials_started(tmp_path: Path) -> None:
    metrics = Metrics(epoch_time=0.9, steady_time=0.5, start_time=0.1)
    forked = [record("numpy_to_numpy", index, metrics=metrics, process="forked", run="a") for index in range(2)]
    write_log(tmp_path, forked)
    text = Parsed(page.render(sets.collect(tmp_path))).text
    assert text.count("python -m loaders compare selection --fresh --size tiny.") == 1
    assert "2 rounds, 2 of 2 trials forked" in text
    assert "each trial in a fresh process or a fork" in text
    write_log(tmp_path, [msgspec.structs.replace(each, process="fresh", run="b") for each in forked], machine="other")
    fresh = Parsed(page.render([each for each in sets.collect(tmp_path) if each.origin.machine == "other"])).text
    assert "each trial in a fresh process, with" in fresh
    assert "forked" not in fresh
    assert "--fresh" not in fresh


def test_charts_of_one_machine_do_not_keep_out_another_that_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have room without charts, and with the first one's charts there is none left for the second."""
    _swept(tmp_path)
    write_log(tmp_path, run_of("b"), machine="other")
    results = sets.collect(tmp_path)
    assert sum(each.answers for each in results) == 2
    whole = page.render(results)
    assert whole.count('class="set"') == 2
    monkeypatch.setattr(page, "ROOMS", page.ROOMS[-1:])
    brief = page.render(results)
    assert ("All figures" in brief, "All figures" in whole) == (False, True), "no box for what is not there"
    without = len(brief)
    monkeypatch.undo()
    assert without < len(whole), "there are charts"
    around = len(page.render([]))
    monkeypatch.setattr(page, "MOST", without - around + 100)
    short = page.render(results)
    assert short.count('class="set"') == 2
    assert len(short) < len(whole)


def test_the_largest_room_that_fits_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _swept(tmp_path)
    results = sets.collect(tmp_path)[:1]
    around, rooms = len(page.render([])), page.ROOMS
    pages = []
    for room in rooms:
        monkeypatch.setattr(page, "ROOMS", (room,))
        pages.append(page.render(results))
    monkeypatch.setattr(page, "ROOMS", rooms)
    assert len(set(pages)) > 3
    for alone in pages:
        monkeypatch.setattr(page, "MOST", len(alone) - around + 1000)
        assert page.render(results) == alone


def test_each_machine_has_a_page_of_its_own_where_no_other_takes_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _swept(tmp_path)
    write_log(tmp_path, run_of("b"), machine="other")
    write_log(tmp_path, run_of("c"), machine="odd name")
    results = sets.collect(tmp_path)
    least = max(len(page.render(results, only=each.origin.machine)) for each in results) - len(page.render([]))
    monkeypatch.setattr(page, "MOST", least + 1000)
    texts = page.rendered(results, [], "all.html", home=None, files={})
    assert list(texts) == ["all.html", "all-box.html", "all-other.html"], "no file is named after what is no name"
    shown = {name: re.findall(r'class="set" data-machine="(.*?)"', text) for name, text in texts.items()}
    assert set(shown["all-box.html"]) == {"box"}
    assert set(shown["all-other.html"]) == {"other"}
    assert texts["all-box.html"].count("<figure") > texts["all.html"].count("<figure")
    for machine in ("box", "other"):
        assert f'href="all-{machine}.html"' in texts["all.html"]
        assert 'href="all.html"' in texts[f"all-{machine}.html"]
        assert f'href="all-{machine}.html' not in texts[f"all-{machine}.html"], "it says of itself that it is elsewhere"
    cut = next(each for each in results if each.origin.machine == "other")
    assert f'href="all-other.html#{cut.id}' in texts["all.html"], "what is cut says where the rest is"
    for machine, place in re.findall(r'href="all-(.*?)\.html#(.*?)"', texts["all.html"]):
        assert f'id="{place}"' in texts[f"all-{machine}.html"]
    assert list(page.rendered(results[:1], [], "all.html", home=None, files={})) == ["all.html"], "of one machine"


def test_where_a_machine_has_its_own_page_the_smallest_room_holds_the_first_case_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = [msgspec.structs.replace(each, case={"images": "2000"}) for each in run_of("a")]
    write_log(tmp_path, [*run_of("a"), *more])
    write_log(tmp_path, run_of("b"), machine="other")
    results = sets.collect(tmp_path)
    cases = sum(len(each.cases) for found in results for each in found.comparisons)
    first = sum(len(found.comparisons) for found in results)
    assert cases > first
    monkeypatch.setattr(page, "ROOMS", page.ROOMS[-1:])
    assert page.render(results).count('<div class="case"') == cases, "there is no other page"
    shared, *own = page.rendered(results, [], "all.html", home=None, files={}).values()
    assert shared.count('<div class="case"') == first
    assert sum(each.count('<div class="case"') for each in own) == cases


def test_each_function_stands_once_however_many_strategies_use_it(tmp_path: Path) -> None:
    of: dict[str, Any] = {"question": "batching", "case": {"data": "x1", "augment": "off"}}
    write_log(tmp_path, [record(each, 0, run="a", **of) for each in ("path_generator", "path_generator_pool")])
    write_log(tmp_path, [record("path_generator", 0, run="b", **of)], machine="other")
    results = sets.collect(tmp_path)
    html = page.render(results)
    rows = {row.strategy: row for found in results for each in found.comparisons for row in each.rows}
    parts = {part for row in rows.values() for part in row.source.split("\n\n\n")}
    assert len(parts) < sum(len(row.source.split("\n\n\n")) for row in rows.values()), "they share one"
    held = re.findall(r'<pre id="c(\d+)"><code>(.*?)</code></pre>', html, re.DOTALL)
    assert sorted(unescape(each) for _, each in held) == sorted(parts)
    for name, row in rows.items():
        listed = re.search(rf'<li id="code-batching-{name}">(.*?)</li>', html)
        assert listed
        places = re.findall(r'href="#c(\d+)"', listed[1])
        assert "\n\n\n".join(unescape(dict(held)[place]) for place in places) == row.source
    assert html.count('href="#code-batching-path_generator"') == 2, "in each set"


def test_what_the_readme_quotes_has_room_before_what_is_newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def at(day: int, *, rounds: int, run: str) -> list[Record]:
        started = f"2026-11-{day}T00:00:00+00:00"
        found = [
            record(each, index, time=1.0, run=run)
            for index in range(rounds)
            for each in ("numpy_to_numpy", "mixed_copy")
        ]
        return [msgspec.structs.replace(each, size="full", started=started) for each in found]

    monkeypatch.setenv("LOADERS_MACHINE", "mine")
    for machine, day, rounds in ((PUBLISHED, 20, 3), ("reference-more", 21, 6), ("anybody", 22, 6)):
        write_log(tmp_path, at(day, rounds=rounds, run=machine), machine=machine)
    results = sets.collect(tmp_path)
    assert results[0].origin.machine == "anybody", "it is the newest"
    shown = re.findall(r'class="set" data-machine="(.*?)"', page.render(results))
    assert shown == [PUBLISHED, "reference-more", "anybody"]


def test_what_another_machine_answers_gives_way_before_what_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of(machine: str, question: str, rounds: int, **case: str) -> None:
        names = ("numpy_to_numpy", "mixed_copy") if question == "selection" else ("range_indexed", "interleave")
        found = [
            msgspec.structs.replace(record(each, index, run=machine, question=question, case=case), size="full")
            for index in range(rounds)
            for each in names
        ]
        write_log(tmp_path, found, machine=machine)

    monkeypatch.setenv("LOADERS_MACHINE", "mine")
    of(PUBLISHED, "selection", 6, images="500")
    of("reference-more", "selection", 3, images="500")
    of("reference-more", "read_order", 6, record="jpeg", data="x16")
    of("reference-old", "selection", 3, images="500")
    of("mine", "selection", 3, images="500")
    results = sets.collect(tmp_path)
    whole = page.render(results)
    monkeypatch.setattr(page, "ROOMS", page.ROOMS[-1:])
    short = page.render(results)
    shown = {
        text: {each.id: re.findall(rf'<section id="{each.id}-(selection|read_order)"', text) for each in results}
        for text in (whole, short)
    }
    for each in results:
        machine = each.origin.machine
        assert sorted(shown[whole][each.id]) == sorted(one.question for one in each.comparisons)
        left = ["read_order"] if machine == "reference-more" else sorted(shown[whole][each.id])
        assert shown[short][each.id] == left, machine
    assert "Left out here" not in whole
    said = "<p>Left out here, because another machine answers it: <code>selection</code>.</p>"
    assert short.count("Left out here") == short.count(said) == 1
    assert not re.search(r"Not measured here:[^.]*selection", short)
    places = set(re.findall(r' id="(.*?)"', short))
    assert {each for each in re.findall(r'href="#(.*?)"', short) if each not in places} == set()


def test_the_published_set_begins_with_what_the_readme_says_whoever_has_measured_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of(machine: str, question: str, case: dict[str, str], **seconds: float) -> None:
        found = [
            record(name, index, time=each * (1 + index / 50), run=machine, question=question, case=case)
            for index in range(4)
            for name, each in seconds.items()
        ]
        given = {"TF_ENABLE_ONEDNN_OPTS": "1"} if machine != PUBLISHED else {}
        found = [msgspec.structs.replace(each, size="full") for each in found]
        write_log(tmp_path, found, machine=machine, variables=given)

    monkeypatch.setenv("LOADERS_MACHINE", "mine")
    of(PUBLISHED, "selection", {"images": "500"}, numpy_to_numpy=1.0, mixed_copy=3.0)
    of(PUBLISHED, "read_order", {"record": "jpeg", "data": "x16"}, range_indexed=2.0, interleave=1.0)
    of("reference-more", "selection", {"images": "500"}, numpy_to_numpy=1.0, mixed_copy=3.0, list_to_list=0.2)
    of("reference-more", "record_format", {"page_cache": "warm", "data": "x16"}, encoded_bytes=1.0, raw_pixels=0.5)
    results = sets.collect(tmp_path)
    more, reference = sorted(results, key=lambda each: each.origin.machine == PUBLISHED)

    def begins(text: str, found: sets.ResultSet) -> str:
        start = text.index("<nav", text.index(f'<section id="{found.id}"'))
        return text[start : text.index("</table>", text.index("<h3>Findings", start))]

    text = page.render(results)
    start = begins(text, reference)
    assert f'href="#{more.id}-selection"' in start
    assert f'href="#{reference.id}-read_order"' in start
    assert f'<a href="#{more.id}-record_format">record_format</a>' in start, "what it lacks is found elsewhere"
    assert "<code>record_format</code>" not in text[text.index(f'id="{reference.id}-start"') :].partition("Glossary")[0]
    assert "list_to_list" in start
    advised = start.partition("<h3>Findings")[2]
    where = "(on reference-more, measured with <code>TF_ENABLE_ONEDNN_OPTS=1</code> set)"
    assert advised.count(where) == advised.count(f"#{more.id}-") == 1
    claims_there = text[text.index(f'id="{reference.id}-claims"') :]
    assert f'<a href="#{more.id}-selection">' in claims_there[: claims_there.index("</table>")]
    assert '<span class="label">on reference-more</span>' in claims_there[: claims_there.index("</table>")]
    assert "(on " not in begins(text, more), "another set speaks of itself"
    older = text[text.index(f'<section id="{reference.id}-selection"') :].partition("</section>")[0]
    assert f'The findings go by <a href="#{more.id}-selection">reference-more</a>' in older
    assert text.count("The findings go by") == 1, "nor of what is as it is quoted, nor by whoever is quoted"
    alone = begins(page.render(results, only=PUBLISHED), reference)
    assert "list_to_list" not in alone, "a machine's own page too"
    assert f'href="#{reference.id}-selection"' in alone


def test_charts_that_are_not_shown_are_not_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _swept(tmp_path)
    results = sets.collect(tmp_path)
    count, drawn = 0, svg.drawn

    def counted(*of: Any, **how: Any) -> Any:
        nonlocal count
        count += 1
        return drawn(*of, **how)

    monkeypatch.setattr(svg, "drawn", counted)
    monkeypatch.setattr(page, "ROOMS", page.ROOMS[-3:-1])
    html = page.render(results)
    assert html.count("<figure") == count == 1, "the first of the first case"

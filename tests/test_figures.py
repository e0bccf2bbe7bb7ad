from __future__ import annotations

from typing import Annotated, get_args

import msgspec
import pytest

from loaders._figures import ASV_UNITS, Unit, declared, figure, meaning
from loaders._rows import FIGURES, MEASURED
from loaders._trial.metrics import Metrics


class _Metrics(msgspec.Struct):
    one: Annotated[float | None, figure("s", "One.", name="uno", heading="the one", scale="ratio", tracked=True)] = None
    two: Annotated[list[int] | None, meaning("Two.")] = None
    three: int = 0


def test_a_declaration_is_read_from_its_field() -> None:
    (found,) = declared(_Metrics).values()
    assert (found.field, found.name, found.heading) == ("one", "uno", "the one")
    assert (found.unit, found.meaning, found.scale, found.tracked) == ("s", "One.", "ratio", True)


def test_asv_gets_only_what_it_can_compare() -> None:
    with pytest.raises(ValueError, match="asv tracks only s and bytes"):
        figure("samples/s", "Larger is better.", tracked=True)
    assert {each.unit for each in declared(Metrics).values() if each.tracked} == set(ASV_UNITS)


def test_every_unit_is_declared() -> None:
    """mypy does not look into ``Annotated``."""
    assert {each.unit for each in declared(Metrics).values()} <= set(get_args(Unit))


def test_every_field_of_the_metrics_says_what_it_means() -> None:
    properties = msgspec.json.schema(Metrics)["$defs"]["Metrics"]["properties"]
    assert [name for name, each in properties.items() if "description" not in each] == []


def test_names_and_headings_are_unique() -> None:
    named = [each.name for each in declared(Metrics).values() if each.name]
    headings = [each.heading for each in FIGURES.values() if each.heading]
    assert len(named) == len(set(named)) == len(MEASURED)
    assert len(headings) == len(set(headings))
    assert list(FIGURES)[:3] == ["time", "start", "steady"]
    assert set(MEASURED) < set(FIGURES)

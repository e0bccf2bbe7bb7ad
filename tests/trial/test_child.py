from __future__ import annotations

from tests.conftest import EACH_START, Strategy


@EACH_START
def test_what_a_strategy_prints_closes_or_changes_does_not_spoil_the_record(strategy: Strategy) -> None:
    record = strategy(
        "print('x' * 5_000_000)\nsys.stderr.write('y' * 5_000_000)\n"
        "os.chdir('/')\nsys.stdout.close()\nos.close(1)\nreturn right"
    )
    assert (record.status, record.message) == ("ok", "")

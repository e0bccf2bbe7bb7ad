from __future__ import annotations

import pytest

from tests.conftest import Strategy


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("return [job.inputs.images[:99]]", "wrong_output", "delivered 99 samples instead of 100"),
        ("return [job.inputs.images[[0] * 100]]", "wrong_output", "more often than it exists"),
        ("return [job.inputs.images[:100].astype('f4')]", "wrong_output", "got float32[32, 32, 3], expected float64"),
        ("return [job.inputs.images[:100] + 1e-9]", "wrong_output", "with other values"),
        ("job.inputs.images[:] = 0\nreturn [job.inputs.images[:100]]", "wrong_output", "with other values"),
        (
            "return [images[np.argsort(images[:, 0, 0, 0])][200:300]]",
            "wrong_output",
            "not random: they lie between 200 and 299 of 500",
        ),
        (
            "return [images[np.argsort(images[:, 0, 0, 0])][::5]]",
            "wrong_output",
            "not random: they lie between 0 and 495 of 500, and 5 apart",
        ),
        (
            "return [np.random.default_rng(1).choice(images[images[:, 0, 0, 0] < 0.4], 100, replace=False)]",
            "wrong_output",
            "not random",
        ),
        ("return []", "wrong_output", "delivered 0 samples instead of 100"),
        ("raise ValueError('mine')", "failed", "ValueError: mine (planted.py, line 11, in planted)"),
        ("import no_such_module", "failed", "No module named 'no_such_module'"),
        ("raise Skip('jemalloc is not installed')", "skipped", "jemalloc is not installed"),
        ("raise SystemExit(0)", "failed", "SystemExit: 0"),
        ("raise KeyboardInterrupt", "failed", "KeyboardInterrupt"),
        ("os._exit(7)", "failed", "exit code 7"),
        ("ctypes.string_at(0)", "failed", "ended by SIGSEGV"),
        ("os.kill(os.getpid(), 9)", "failed", "ended by SIGKILL"),
        ("return 5", "failed", "TypeError: 'int' object is not iterable"),
        ("return np.empty(2**50)", "failed", "Unable to allocate"),
    ],
)
def test_what_goes_wrong_is_said_in_words(strategy: Strategy, body: str, status: str, message: str) -> None:
    record = strategy(body)
    assert (record.status, message in record.message) == (status, True), record.message
    assert record.metrics.epoch_time is None, "a strategy that went wrong must never have a time"

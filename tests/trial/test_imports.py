from __future__ import annotations

from pathlib import Path

import pytest

from loaders._trial import Trial, imports


@pytest.mark.parametrize("module", ["selection.py", "batching/__init__.py", "batching/pool.py", "batching/new.py"])
def test_what_was_seen_to_be_imported_is_forgotten_when_the_code_of_the_question_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    monkeypatch.setattr(imports, "__file__", str(tmp_path / "_trial" / "imports.py"))
    monkeypatch.setenv("LOADERS_CACHE", str(tmp_path))
    (tmp_path / "questions" / "batching").mkdir(parents=True)
    for name in ("selection.py", "batching/__init__.py", "batching/pool.py"):
        (tmp_path / "questions" / name).write_text("before")
    question = module.partition("/")[0].removesuffix(".py")
    trial = Trial(question=question, strategy="any", case={}, corpus="", seed=1)
    imports.remember(trial, ["seen"])
    assert imports.known(trial) == ["seen"]
    (tmp_path / "questions" / module).write_text("after")
    assert imports.known(trial) == []

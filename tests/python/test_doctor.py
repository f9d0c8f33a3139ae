"""`python -m stoker doctor`: what it finds here, and that it sees what is broken."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import stoker
from stoker import _doctor


def states(found: list[_doctor.Finding]) -> dict[str, str]:
    return {finding.what: finding.state for finding in found}


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stoker", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_everything_that_stoker_itself_does_works_here():
    found = states(list(_doctor.findings()))
    assert "broken" not in found.values()
    assert {name: found[name] for name in ("Python", "cores", "formats", "cpu")} == dict.fromkeys(
        ("Python", "cores", "formats", "cpu"), "ok"
    )
    assert set(_doctor.TESTED) <= set(found)


def test_json_and_lines_say_the_same():
    listed, lines = run("doctor", "--json"), run("doctor")
    assert (listed.returncode, lines.returncode) == (0, 0), (listed, lines)
    found = json.loads(listed.stdout)
    assert [each["what"] for each in found] == [
        line[9:].split("  ")[0] for line in lines.stdout.splitlines()
    ]
    assert set(found[0]) == {"state", "what", "text", "cure"}


def test_wrong_pixels_are_broken(monkeypatch):
    monkeypatch.setattr(_doctor, "_SUM", 1)
    finding = _doctor._feeding("cpu")
    assert finding.state == "broken" and "the pixels are wrong" in finding.text
    assert _doctor.main([]) == 1


def test_a_loader_that_fails_is_broken(monkeypatch):
    def refuse(*_, **__):
        raise stoker.FeedError("no memory")

    monkeypatch.setattr(stoker, "Loader", refuse)
    assert _doctor._feeding("cpu") == ("broken", "cpu", "a Loader ended: no memory", "")


def test_a_format_without_its_library_is_missing(monkeypatch):
    plugins = [("AVIF", "libavif", "", "libstoker_avif.so is not there")]
    monkeypatch.setattr(_doctor._core, "codec_plugins", lambda: plugins)
    monkeypatch.setattr(_doctor, "_PICTURES", {"WebP": "00"})
    found = {finding.what: finding for finding in _doctor._formats()}
    assert found["AVIF"].state == found["WebP"].state == "missing"
    assert "libavif" in found["AVIF"].text and "AVIF" not in found["formats"].text


def test_a_machine_without_libcurl_lacks_stores(monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("libstoker_curl.so cannot be opened: libcurl.so.4")

    monkeypatch.setattr(stoker, "open", refuse)
    found = _doctor._stores()
    assert found.state == _doctor.MISSING
    assert "libcurl.so.4" in found.text


def test_wrong_options_end_with_2():
    assert run("doctor", "--jsn").returncode == 2


def test_the_version_is_said_with_and_without_the_program():
    said = run("--version")
    assert said.returncode == 0 and stoker.__version__ in said.stdout


def test_the_extras_are_the_packages_that_are_looked_for():
    tomllib = pytest.importorskip("tomllib")  # from Python 3.11 on
    project = Path(__file__).parents[2] / "pyproject.toml"
    extras = tomllib.loads(project.read_text())["project"]["optional-dependencies"]
    assert set(extras) - {"test"} == set(_doctor.TESTED)
    for name, (tested, _) in _doctor.TESTED.items():
        oldest = tested.split(" and ")[0]
        assert any(need == f"{name}>={oldest}" for need in extras[name]), (name, extras[name])

"""What set-up and CI install is locked: each version, with the hashes of its files."""

import importlib.util
import re
import sys
import tomllib
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
LOCKED = ROOT / "tools" / "locked.txt"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PYTHONS = [found for line in PROJECT["project"]["classifiers"] if (found := line.rpartition(" :: ")[2])[:2] == "3."]
WANTED = sorted(
    {
        "pip",
        *PROJECT["build-system"]["requires"],
        *PROJECT["project"]["dependencies"],
        *(requirement for extra in PROJECT["project"]["optional-dependencies"].values() for requirement in extra),
    }
)


def entries():
    for found in re.finditer(
        r"^(\S.*?) \\\n((?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", LOCKED.read_text(), re.MULTILINE
    ):
        yield Requirement(found[1]), found[2].count("sha256")


def test_every_line_of_the_list_is_a_version_with_hashes_and_names_no_host():
    lines = LOCKED.read_text().splitlines()
    assert "://" not in LOCKED.read_text()
    assert sum(1 + hashes for _, hashes in entries()) == len([line for line in lines if not line.startswith("#")])
    assert all(len(entry.specifier) == 1 and str(entry.specifier).startswith("==") for entry, _ in entries())


@pytest.mark.parametrize("python", PYTHONS)
def test_all_that_is_asked_for_is_locked_once_for_each_python(python):
    here = {"python_version": python, "python_full_version": f"{python}.1", "sys_platform": "linux", "os_name": "posix"}
    versions = {}
    for entry, _ in entries():
        if entry.marker is None or entry.marker.evaluate(here):
            name = canonicalize_name(entry.name)
            assert name not in versions, f"two versions of {name}"
            versions[name] = str(entry.specifier).removeprefix("==")
    for text in WANTED:
        asked = Requirement(text)
        assert asked.specifier.contains(versions[canonicalize_name(asked.name)], prereleases=True), f"{text}: make lock"


@pytest.fixture
def setup(tmp_path, monkeypatch):
    """tools/setup.py, with a registry of one package, and a place to install into."""
    specified = importlib.util.spec_from_file_location("setup", ROOT / "tools" / "setup.py")
    module = importlib.util.module_from_spec(specified)
    specified.loader.exec_module(module)
    with zipfile.ZipFile(tmp_path / "peer_of_ours-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("peer_of_ours.py", "")
        wheel.writestr(
            "peer_of_ours-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: peer-of-ours\nVersion: 1.0\n"
        )
        wheel.writestr(
            "peer_of_ours-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("peer_of_ours-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_TARGET", str(tmp_path / "installed"))
    monkeypatch.delenv("CI", raising=False)
    return module


def install(setup, tmp_path, version, digest):
    locked = tmp_path / "locked.txt"
    locked.write_text(f"peer-of-ours=={version} \\\n    --hash=sha256:{digest}\n")
    done = setup.install(Path(sys.prefix), ["peer-of-ours"], "--quiet", locked=locked)
    return done and (tmp_path / "installed" / "peer_of_ours.py").exists()


def test_the_locked_file_is_installed(setup, tmp_path, capfd):
    digest = sha256((tmp_path / "peer_of_ours-1.0-py3-none-any.whl").read_bytes()).hexdigest()
    assert install(setup, tmp_path, "1.0", digest)
    assert "any that will do" not in capfd.readouterr().out


def test_ci_refuses_another_file_of_a_locked_version(setup, tmp_path, monkeypatch):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(
        SystemExit, match=r"CI installs what is locked, and pip could not .*: peer-of-ours\n +make lock"
    ):
        install(setup, tmp_path, "1.0", "0" * 64)


def test_a_user_is_told_of_a_locked_version_that_cannot_be_had_and_gets_another(setup, tmp_path, capfd):
    assert install(setup, tmp_path, "2.0", "0" * 64)
    assert (
        "not in the versions of locked.txt (pip's reason stands above): in any that will do" in capfd.readouterr().out
    )

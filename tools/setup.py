"""Make the virtual environment and install what pyproject.toml says, in the versions of tools/locked.txt.

Where the locked versions cannot be had, it says so and takes what pyproject.toml allows; where CI is set, that is an
error. Standard library only.

python3 tools/setup.py .venv                     build, run-time, test and lint requirements
python3 tools/setup.py --extra bench .venv       those of one extra; what cannot be had is reported and left out
python3 tools/setup.py --extra spark --together .venv       the same, but all of them or an error
"""

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKED = ROOT / "tools" / "locked.txt"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("venv", type=Path)
    parser.add_argument("--extra", help="install this extra's requirements only")
    parser.add_argument("--together", action="store_true", help="all of the extra's requirements, or an error")
    options = parser.parse_args()
    check_this_python()
    import tomllib  # not before the check: it is in the standard library from 3.11 on

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    if options.extra and options.together:
        install_together(options.venv, extras[options.extra])
        return
    if options.extra:
        install_each(options.venv, extras[options.extra])
        return
    if not (options.venv / "bin" / "pip").exists():
        make_venv(options.venv)
    lock_pip(options.venv)
    requirements = project["build-system"]["requires"] + project["project"]["dependencies"]
    if sysconfig.get_config_var("Py_GIL_DISABLED"):  # mypy has no wheels for a Python without a GIL
        print("installing build and test tools", flush=True)
        requirements += extras["test"]
    else:
        print("installing build, test and lint tools", flush=True)
        requirements += extras["test"] + extras["lint"]
    # an older release that is a wheel rather than a newer one to compile: numpy takes minutes
    if not install(options.venv, requirements, "--quiet", "--prefer-binary"):
        fail_to_install()


def check_this_python() -> None:
    """Say what is missing before a compiler does."""
    if sys.version_info < (3, 11):
        fail(f"queueduct needs Python 3.11 or later: this is {sys.version.split()[0]}", "make PYTHON=python3.11")
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if not header.exists():
        fail(f"Python's headers are missing: {header}", "install the package python3-dev")


def make_venv(venv: Path) -> None:
    print(f"making {venv.name} with Python {sys.version.split()[0]}", flush=True)
    if importlib.util.find_spec("ensurepip") is not None:
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    elif importlib.util.find_spec("pip") is not None:
        # Debian without python3-venv: pip can fill an environment from outside
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
        subprocess.run(
            [sys.executable, "-m", "pip", "--python", str(venv / "bin" / "python"), "install", "--quiet", "pip"],
            check=True,
        )
    else:
        fail("this Python has neither ensurepip nor pip", "install the package python3-venv")


def lock_pip(venv: Path) -> None:
    """Installs the locked pip: older ones cannot take hashes from a list of versions."""
    entry = re.search(r"^pip==.*\\\n(?: +--hash=.*\n)+", LOCKED.read_text(), re.MULTILINE)
    assert entry, f"{LOCKED} has no pip: make lock"
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
        listed.write(entry[0])
        listed.flush()
        command = [venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--require-hashes", "-r", listed.name]
        if subprocess.run(command, check=False).returncode != 0:
            refuse_in_ci("pip")


def install(venv: Path, requirements: list[str], *options: str, locked: Path = LOCKED) -> bool:
    """Installs the locked versions, or any that will do where those cannot be had and this is no CI."""
    command = [venv / "bin" / "pip", "install", *options]
    if subprocess.run([*command, "--constraint", locked, *requirements], check=False).returncode == 0:
        return True
    refuse_in_ci(", ".join(requirements))
    print(f"  not in the versions of {locked.name} (pip's reason stands above): in any that will do", flush=True)
    return subprocess.run([*command, *requirements], check=False).returncode == 0


def refuse_in_ci(what: str) -> None:
    if os.environ.get("CI"):
        fail(
            f"CI installs what is locked, and pip could not (its reason stands above): {what}",
            "make lock, and commit it",
        )


def install_each(venv: Path, requirements: list[str]) -> None:
    """One at a time: a peer that cannot be installed here is reported and left out."""
    for requirement in requirements:
        print(f"  {requirement}", flush=True)
        if not install(venv, [requirement], "--quiet"):
            print(f"  {requirement} could not be installed; its rows will say so", flush=True)


def install_together(venv: Path, requirements: list[str]) -> None:
    """In one go, with pip's own progress where somebody watches."""
    for requirement in requirements:
        print(f"  {requirement}", flush=True)
    if not install(venv, requirements, *([] if sys.stdout.isatty() else ["--quiet"])):
        fail_to_install()


def fail_to_install() -> None:
    fail("pip could not install these (its reason stands above)", "check pip's registry and the disk, then try again")


def fail(problem: str, remedy: str) -> None:
    sys.exit(f"error: {problem}\n       {remedy}")


if __name__ == "__main__":
    main()

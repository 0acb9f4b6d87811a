"""Make the virtual environment and install what pyproject.toml says. Standard library only.

python3 tools/setup.py .venv                     build, run-time, test and lint requirements
python3 tools/setup.py --extra bench .venv       those of one extra; what cannot be had is reported and left out
python3 tools/setup.py --extra spark --together .venv       the same, but all of them or an error
"""

import argparse
import importlib.util
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


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
    requirements = project["build-system"]["requires"] + project["project"]["dependencies"]
    if sysconfig.get_config_var("Py_GIL_DISABLED"):  # mypy has no wheels for a Python without a GIL
        print("installing build and test tools", flush=True)
        pip(options.venv, *requirements, *extras["test"])
    else:
        print("installing build, test and lint tools", flush=True)
        pip(options.venv, *requirements, *extras["test"], *extras["lint"])


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


def install_each(venv: Path, requirements: list[str]) -> None:
    """One at a time: a peer that cannot be installed here is reported and left out."""
    for requirement in requirements:
        print(f"  {requirement}", flush=True)
        if subprocess.run([venv / "bin" / "pip", "install", "--quiet", requirement], check=False).returncode != 0:
            print(f"  {requirement} could not be installed; its rows will say so", flush=True)


def install_together(venv: Path, requirements: list[str]) -> None:
    """In one go, with pip's own progress where somebody watches."""
    for requirement in requirements:
        print(f"  {requirement}", flush=True)
    quiet = [] if sys.stdout.isatty() else ["--quiet"]
    done = subprocess.run([venv / "bin" / "pip", "install", *quiet, *requirements], check=False)
    if done.returncode != 0:
        fail(
            "pip could not install these (its reason stands above)", "check pip's registry and the disk, then try again"
        )


def pip(venv: Path, *requirements: str) -> None:
    # an older release that is a wheel rather than a newer one to compile: numpy takes minutes
    subprocess.run([venv / "bin" / "pip", "install", "--quiet", "--prefer-binary", *requirements], check=True)


def fail(problem: str, remedy: str) -> None:
    sys.exit(f"error: {problem}\n       {remedy}")


if __name__ == "__main__":
    main()

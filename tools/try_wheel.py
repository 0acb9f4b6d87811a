"""Use a wheel as a stranger does: python3.X tools/try_wheel.py [--demo] WHEEL

In a new environment of this Python, outside the repository, where no compiler is in the PATH: install the wheel with
what it depends on, run the README's example, which the wheel itself carries, and `queueduct doctor`. With --demo also
the extra [arrow], and a short `queueduct demo --no-spark`. Standard library only.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from setup import make_venv

TELL_DESCRIPTION = "import importlib.metadata; print(importlib.metadata.metadata('queueduct').get_payload())"


class Stranger:
    """Somebody with a directory of their own, a Python, and nothing else."""

    def __init__(self, directory: Path, queues: Path) -> None:
        self.directory = directory
        self.bin = directory / "venv" / "bin"
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_"))
        }
        self.environment |= {"PATH": str(self.bin), "CC": "false", "CXX": "false", "QUEUEDUCT_DIR": str(queues)}

    def run(self, program: str, *arguments: str) -> str:
        """Runs a program of the environment. Returns its output, or ends with it."""
        done = subprocess.run(
            [self.bin / program, *arguments],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode != 0:
            sys.exit(f"{program} {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def run_example(self, page: str) -> str:
        """Runs the first two Python blocks of a page, producer and consumer. Returns what the consumer printed."""
        blocks = re.findall(r"^```python\n(# (\w+\.py).*\n(?:.*\n)*?)```$", page, re.MULTILINE)[:2]
        if [name for _, name in blocks] != ["producer.py", "consumer.py"]:
            sys.exit(f"the description does not begin with a producer and a consumer: {blocks}")
        printed = ""
        for code, name in blocks:
            (self.directory / name).write_text(code)
            printed = self.run("python", name)
        return printed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--demo", action="store_true", help="also run queueduct demo --no-spark")
    options = parser.parse_args()
    wheel = str(options.wheel.resolve())
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory(dir=memory) as queues:
        stranger = Stranger(Path(home), Path(queues))
        make_venv(Path(home, "venv"))
        for compiler in ("cc", "c++", "gcc", "g++", "clang", "ninja"):
            if found := shutil.which(compiler, path=stranger.environment["PATH"]):
                sys.exit(f"a stranger has no {compiler}: {found}")
        stranger.run(
            "pip", "install", "--quiet", "--only-binary", ":all:", f"{wheel}[arrow]" if options.demo else wheel
        )
        printed = stranger.run_example(stranger.run("python", "-c", TELL_DESCRIPTION))
        if printed != "101.5\n1.0\n":
            sys.exit(f"the README's consumer should get 101.5 and a mean of 1.0, and printed:\n{printed}")
        print(stranger.run("queueduct", "doctor"), end="")
        done = "the README's example, queueduct doctor"
        if options.demo:
            print(stranger.run("queueduct", "demo", "--no-spark", "--seconds", "3", "--rate", "5000", "--port", "0"))
            done += ", queueduct demo --no-spark"
        print(f"{done}: as they should be")


if __name__ == "__main__":
    main()

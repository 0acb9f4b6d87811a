"""What docs/spark.md shows runs, and the options it lists are those that there are."""

import re
from pathlib import Path

import pytest

import queueduct
from queueduct.spark.options import SinkOptions, SourceOptions, option_names

PAGE = (Path(__file__).parent.parent.parent / "docs" / "spark.md").read_text()


@pytest.mark.parametrize("number", [0, 1])
def test_the_examples_run(spark, number, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[number]
    exec(compile(code.replace('"lake', f'"{tmp_path}/lake'), "docs/spark.md", "exec"), {})
    out = capsys.readouterr().out
    if number == 0:
        assert re.search(r"ACME.*\n.*BOLT", out)
    else:
        assert out == "[(1, 2, 12.5), (2, 1, 5.0)]\n"
    assert queueduct.queues()


def test_every_option_is_on_the_page():
    for name in {*option_names(SourceOptions), *option_names(SinkOptions)}:
        assert f"`{name}`" in PAGE, name

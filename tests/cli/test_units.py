"""Numbers with units on the command line: exact, and the same in every command."""

from __future__ import annotations

import json

import click
import pytest

import queueduct
from queueduct.cli.units import AMOUNT, BYTES, COUNT, RATE, SECONDS, Duration
from tests.support.command import done


@pytest.mark.parametrize(
    ("kind", "text", "number"),
    [
        (BYTES, "64k", 64 << 10),
        (BYTES, "64KiB", 64 << 10),
        (BYTES, "1GB", 10**9),
        (BYTES, "1.5M", 3 << 19),
        (AMOUNT, "2.5M", 2_500_000),
        (AMOUNT, "1e3", 1000),
        (AMOUNT, "10_000", 10_000),
        (AMOUNT, "9007199254740993", 2**53 + 1),
        (AMOUNT, "9223372036854775807", 2**63 - 1),
        (SECONDS, "500ms", 0.5),
        (SECONDS, "1h", 3600.0),
        (SECONDS, "1e-3", 0.001),
        (RATE, "1k/s", 1000.0),
        (RATE, "30/m", 0.5),
        (RATE, "250", 250.0),
    ],
)
def test_a_number_is_what_it_says(kind, text, number):
    assert kind.convert(text, None, None) == number


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (AMOUNT, "1.5"),
        (AMOUNT, "-1"),
        (AMOUNT, "many"),
        (AMOUNT, "10x"),
        (AMOUNT, "nan"),
        (AMOUNT, "9223372036854775808"),
        (AMOUNT, "1e999"),
        (COUNT, "0"),
        (BYTES, "4 apples"),
        (SECONDS, "-1"),
        (SECONDS, "inf"),
        (SECONDS, "1e999"),
        (Duration(0.05, 3600), "1ms"),
        (Duration(0.05, 3600), "2h"),
        (RATE, "0/s"),
        (RATE, "1k/"),
        (RATE, "1k/year"),
    ],
)
def test_what_is_no_such_number_is_refused_with_its_text(kind, text):
    with pytest.raises(click.BadParameter, match=text.split()[0].replace(".", r"\.")):
        kind.convert(text, None, None)


def test_sequences_that_differ_by_one_are_two_also_beyond_what_a_float_holds():
    """Sequences are often nanoseconds: a float would take both for one, and nothing would be put."""
    with queueduct.BoundedQueue.create("jobs", 8) as jobs:
        for number in (1763523000123456788, 1763523000123456789):
            done("put", "jobs", "a", "--producer", "feed", "--sequence", str(number))
        assert jobs.qsize() == 2


def test_sizes_and_times_have_units_in_the_recording_commands_too(tmp_path):
    with queueduct.EventQueue.create("ticks", item="f8") as ticks:
        ticks.put_many([1.0] * 5)
        options = ["--bytes-per-file", "1MiB", "--rows-per-file", "10k", "--seconds-per-file", "500ms"]
        told = done("record", "ticks", "--to", str(tmp_path / "rec"), *options, "--duration", "200ms", "--json")
        assert json.loads(told)["rows"] == 5

"""Options: what is understood, and what is refused with the rule, the value and the remedy."""

import pytest

from queueduct.spark.options import SinkOptions, SourceOptions


def test_names_are_read_in_any_case_of_letters():
    options = SourceOptions.of({"QUEUE": "ticks", "maxrowspertrigger": "5", "FailOnDataLoss": "FALSE"})
    assert (options.queue, options.max_rows_per_trigger, options.fail_on_data_loss) == ("ticks", 5, False)


def test_defaults_lose_nothing_and_wait():
    options = SourceOptions.of({"path": "ticks"})
    assert (options.queue, options.starting_offsets, options.fail_on_data_loss) == ("ticks", None, True)
    assert options.reader is None
    assert SinkOptions.of({"queue": "q"}).timeout is None


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "a queue must be named"),
        ({"queue": "q", "maxRowsPerTriger": "5"}, "did you mean maxRowsPerTrigger"),
        ({"queue": "q", "maxRowsPerTrigger": "many"}, "whole number: maxRowsPerTrigger='many'"),
        ({"queue": "q", "maxRowsPerTrigger": "0"}, "at least 1"),
        ({"queue": "q", "partitions": "-1"}, "at least 1"),
        ({"queue": "q", "startPosition": "-1"}, "at least 0"),
        ({"queue": "q", "startingOffsets": "first"}, "earliest, latest or a position"),
        ({"queue": "q", "startingOffsets": "-3"}, "earliest, latest or a position"),
        ({"queue": "q", "failOnDataLoss": "maybe"}, "true or false"),
        ({"queue": "q", "strings": "text"}, "string or binary"),
    ],
)
def test_a_bad_option_of_the_source_says_what_is_wrong(given, why):
    with pytest.raises(ValueError, match=why):
        SourceOptions.of(given)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "a queue must be named"),
        ({"queue": "q", "timeout": "soon"}, "number of seconds"),
        ({"queue": "q", "timeout": "nan"}, "number of seconds"),
        ({"queue": "q", "sequence": "3"}, "give producer too"),
    ],
)
def test_a_bad_option_of_the_sink_says_what_is_wrong(given, why):
    with pytest.raises(ValueError, match=why):
        SinkOptions.of(given)

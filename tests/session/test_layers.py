"""A micro-batch by layers, as EXPLAIN ANALYZE shows it."""

from wjoin.measured.layers import layer_lines


def test_layers_are_those_of_one_micro_batch_in_the_order_of_rows():
    parts = {"triggerExecution": 3000, "addBatch": 2400, "walCommit": 100}
    layers = {"joining": 600_000, "arriving": 1_500_000, "making": 0}
    assert layer_lines(parts, layers, 3) == [
        ("a micro-batch", "1 s"),
        ("  plans, offsets, logs", "200 ms"),
        ("  tasks", "800 ms"),
        ("    reading, and on the way to Python", "500 ms"),
        ("    join", "200 ms"),
    ]


def test_without_a_micro_batch_there_are_none():
    assert layer_lines({}, {}, 0) == []

"""Keys whose names or messages somebody has changed on the way to a site."""

import pyarrow as pa
import pytest

from wjoin.sites.failures import SiteError
from wjoin.sites.keys import decode_keys, encode_keys
from wjoin.sites.limits import Limits

NAME, INSIDE, NO_TEXT = b"a-name", b"within", b"\xee\xff-\xfe\xc3\xee"


@pytest.mark.parametrize(
    ("values", "named"),
    [([1, 2], NAME), ([{"within": 1}], NAME), ([{"within": 1}], INSIDE), ([[{"within": 1}]], INSIDE)],
)
def test_names_that_are_no_text_are_refused(values: list[object], named: bytes) -> None:
    body = encode_keys(pa.record_batch({NAME.decode(): pa.array(values)}))
    assert decode_keys(memoryview(body), Limits()).unpack().num_rows == len(values)
    assert body.count(named) == 1
    with pytest.raises(SiteError) as caught:
        decode_keys(memoryview(body.replace(named, NO_TEXT)), Limits())
    assert caught.value.kind == "broken"


def test_a_column_that_is_there_twice_is_refused() -> None:
    body = encode_keys(pa.record_batch({"a-name": [1], "b-name": ["x"]})).replace(b"a-name", b"b-name")
    with pytest.raises(SiteError, match="twice"):
        decode_keys(memoryview(body), Limits())


def test_a_first_message_that_is_no_schema_is_refused() -> None:
    batch = pa.record_batch({"a-name": [1, 2]}).serialize().to_pybytes()
    # Arrow reads such a message as if it were a schema: the process ends.
    for body in (batch, batch + batch):
        with pytest.raises(SiteError, match="no schema"):
            decode_keys(memoryview(body), Limits())

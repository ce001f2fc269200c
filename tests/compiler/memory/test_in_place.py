import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.backends.in_place import window_lead_bytes


def simulate(size, channels, kernel, stride, pad, lead):
    """Run a depthwise window sum inside one bytearray; True when it equals the safe result."""
    out = (size + 2 * pad - kernel) // stride + 1
    source = [(7 * i + 3) % 251 for i in range(size * size * channels)]

    def run(read, write):
        for y in range(out):
            for x in range(out):
                for c in range(channels):
                    total = 0
                    for ky in range(max(0, pad - y * stride), kernel):
                        for kx in range(max(0, pad - x * stride), kernel):
                            row, column = y * stride - pad + ky, x * stride - pad + kx
                            if row < size and column < size:
                                total += read((row * size + column) * channels + c)
                    write((y * out + x) * channels + c, total % 256)

    safe = [0] * (out * out * channels)
    run(source.__getitem__, safe.__setitem__)
    arena = bytearray(max(len(safe), lead + len(source)))
    arena[lead : lead + len(source)] = bytes(source)
    run(lambda i: arena[lead + i], arena.__setitem__)
    return list(arena[: len(safe)]) == safe


@given(
    st.integers(3, 7), st.integers(1, 3), st.sampled_from([1, 3]), st.sampled_from([1, 2]),
    st.booleans(),
)  # fmt: skip
def test_depthwise_inside_its_own_input_is_right_at_the_computed_lead(
    size, channels, kernel, stride, padded
):
    pad = kernel // 2 if padded else 0
    out = (size + 2 * pad - kernel) // stride + 1
    lead = window_lead_bytes(
        (size, size, channels), (out, out, channels), (stride, stride), (pad, pad)
    )
    assert simulate(size, channels, kernel, stride, pad, lead)


def test_lead_of_a_padded_3x3_is_one_row_and_one_pixel():
    """Output pixel (y, x) still needs input row y - 1 from column x - 1 on."""
    assert window_lead_bytes((8, 8, 4), (8, 8, 4), (1, 1), (1, 1)) == (8 + 2) * 4
    assert not simulate(8, 4, 3, 1, 1, lead=(8 + 2) * 4 - 8)


@pytest.mark.parametrize("channels", [1, 5])
def test_pointwise_needs_no_more_than_its_own_pixel(channels):
    assert window_lead_bytes((4, 4, channels), (4, 4, channels), (1, 1), (0, 0)) == channels


def lead_by_definition(case):
    """Walk through all pairs of pixels: what one writes must end below what a later one reads."""
    (rows, columns, channels), shape, strides, pads, element, at_once, interleaved = case
    ends, reads = [], []
    for y in range(rows):
        for x in range(columns):
            ends.append((y * columns + x + 1) * channels * element)
            top, left = max(0, y * strides[0] - pads[0]), max(0, x * strides[1] - pads[1])
            reads.append((top * shape[1] + left) * shape[2] * element)
    lead = 0
    for t, u in itertools.product(range(rows * columns), repeat=2):
        if at_once:
            group_t, group_u = t // at_once, u // at_once
            meets = group_u >= group_t if interleaved else group_u > group_t
        else:
            meets = u >= t
        if meets:
            lead = max(lead, ends[t] - reads[u])
    return lead


@given(
    st.tuples(
        st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3)),
        st.tuples(st.integers(1, 7), st.integers(1, 7), st.integers(1, 3)),
        st.tuples(st.integers(1, 3), st.integers(1, 3)),
        st.tuples(st.integers(0, 2), st.integers(0, 2)),
        st.sampled_from([1, 2, 4]),
        st.sampled_from([0, 1, 2, 3, 4, 16]),
        st.booleans(),
    )
)
def test_the_lead_is_that_of_the_definition(case):
    out, shape, strides, pads, element, at_once, interleaved = case
    found = window_lead_bytes(shape, out, strides, pads, element, at_once, interleaved)
    assert found == lead_by_definition(case)


def test_without_being_asked_pixels_are_bytes_read_and_written_interleaved():
    sizes = ((4, 5, 2), (4, 5, 3), (1, 1), (1, 1))
    assert window_lead_bytes(*sizes) == window_lead_bytes(*sizes, 1, 0, False)


def minimum_lead(inside, outside, strides, pad, element_bytes, group, interleaved):
    """Try every pair of pixels: what is written must not lie above what is read afterwards."""
    rows, columns, channels = outside
    pixels = list(itertools.product(range(rows), range(columns)))
    lead = 0
    for writer in range(len(pixels)):
        end = (writer + 1) * channels * element_bytes
        for reader, (y, x) in enumerate(pixels):
            if not group:
                is_before = writer <= reader
            elif interleaved:
                is_before = writer // group <= reader // group
            else:
                is_before = writer // group < reader // group
            if is_before:
                row, column = max(0, y * strides[0] - pad[0]), max(0, x * strides[1] - pad[1])
                first = (row * inside[1] + column) * inside[2] * element_bytes
                lead = max(lead, end - first)
    return lead


def test_the_lead_is_the_least_that_every_pair_of_pixels_allows():
    sizes = itertools.product((1, 2, 3, 5), (1, 2, 4), (1, 3), (1, 2))
    for n, (height, width, channels, element_bytes) in enumerate(sizes):
        for group, interleaved in (
            (0, False),
            (1, False),
            (2, False),
            (3, True),
            (4, True),
            (50, False),
        ):
            strides, pad = (1 + n % 2, 1 + n // 2 % 2), (n % 3, n // 3 % 2)
            inside = (height * strides[0], width * strides[1], channels)
            for outside in ((height, width, channels), (height, width, 1), (height, width, 5)):
                assert window_lead_bytes(
                    inside, outside, strides, pad, element_bytes, group, interleaved
                ) == minimum_lead(inside, outside, strides, pad, element_bytes, group, interleaved)


def test_by_default_a_kernel_reads_and_writes_single_bytes_interleaved():
    assert window_lead_bytes((4, 4, 2), (4, 4, 2), (1, 1), (1, 1)) == minimum_lead(
        (4, 4, 2), (4, 4, 2), (1, 1), (1, 1), 1, 0, False
    )
    one, other = (
        window_lead_bytes((4, 4, 2), (4, 4, 2), (1, 1), (1, 1), 1, 3, *interleaved)
        for interleaved in ((), (False,))
    )
    assert one == other

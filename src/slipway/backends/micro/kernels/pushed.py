"""What the assembly in the kernels pushes.  Imports nothing: a project's server reads it."""

# Bytes of the stack that a function's own assembly takes, which gcc does not know.
PUSHED_BYTES = {
    "slw_dot_2x3": 8,
    "slw_dot_2x3_wide": 8,
    "slw_fold_pixels": 32,
    "slw_line_pixels": 32,
    "slw_fold_row": 8,
    "slw_line_row": 8,
    "slw_pairs": 20,
    "slw_pairs_line": 20,
    "slw_depthwise_streamed": 8,
    "slw_channels_4x1": 4,
    "slw_channels_4x2": 4,
}

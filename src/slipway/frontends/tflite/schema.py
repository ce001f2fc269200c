"""The parts of TFLite's schema that the importer reads: operator codes, option tables, types.

Numbers are positions in ``schema.fbs`` (version 3).  An option table is written as its fields in
order, ``name:type`` or ``name:type=default``.
"""

from __future__ import annotations

# Operator names by builtin code.
_OPERATORS = """
    ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE
    EMBEDDING_LOOKUP FLOOR FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D
    LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1
    RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS
    SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER
    BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE
    UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT
    LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG
    PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE
    EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD
    REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV
    REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU
    SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS WHERE
    RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE
    NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM
    BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D
    IMAG REAL COMPLEX_ABS HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL
    CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS
    RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU DYNAMIC_UPDATE_SLICE
    RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2
    UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT STABLEHLO_LOGISTIC STABLEHLO_ADD
    STABLEHLO_DIVIDE STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM STABLEHLO_RESHAPE STABLEHLO_CLAMP
    STABLEHLO_CONCATENATE STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONVOLUTION STABLEHLO_SLICE
    STABLEHLO_CUSTOM_CALL STABLEHLO_REDUCE STABLEHLO_ABS STABLEHLO_AND STABLEHLO_COSINE
    STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG STABLEHLO_MINIMUM STABLEHLO_NEGATE
    STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_RSQRT STABLEHLO_SELECT
    STABLEHLO_SUBTRACT STABLEHLO_TANH STABLEHLO_SCATTER STABLEHLO_COMPARE STABLEHLO_CONVERT
    STABLEHLO_DYNAMIC_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_PAD STABLEHLO_IOTA
    STABLEHLO_DOT_GENERAL STABLEHLO_REDUCE_WINDOW STABLEHLO_SORT STABLEHLO_WHILE
    STABLEHLO_GATHER STABLEHLO_TRANSPOSE DILATE STABLEHLO_RNG_BIT_GENERATOR REDUCE_WINDOW
    STABLEHLO_COMPOSITE STABLEHLO_SHIFT_LEFT STABLEHLO_CBRT
"""
OPERATORS = _OPERATORS.split()

CUSTOM = OPERATORS.index("CUSTOM")

DTYPES = {
    0: "float32", 1: "float16", 2: "int32", 3: "uint8", 4: "int64", 6: "bool", 7: "int16",
    9: "int8", 10: "float64", 12: "uint64", 15: "uint32", 16: "uint16", 17: "int4",
}  # fmt: skip

TYPE_NAMES = {
    5: "string", 8: "complex64", 11: "complex128", 13: "resource", 14: "variant", 18: "bfloat16",
    19: "int2", 20: "uint4", 21: "float8_e4m3fn", 22: "float8_e5m2",
}  # fmt: skip

ACTIVATIONS = ("none", "relu", "relu_n1_to_1", "relu6", "tanh", "sign_bit")
PADDINGS = ("same", "valid")

# By the number of the option table in the union BuiltinOptions.
OPTIONS = {
    1: (
        "padding:byte stride_w:int stride_h:int fused_activation_function:byte "
        "dilation_w_factor:int=1 dilation_h_factor:int=1 quantized_bias_type:byte"
    ),
    2: (
        "padding:byte stride_w:int stride_h:int depth_multiplier:int "
        "fused_activation_function:byte dilation_w_factor:int=1 dilation_h_factor:int=1"
    ),
    5: (
        "padding:byte stride_w:int stride_h:int filter_width:int filter_height:int "
        "fused_activation_function:byte"
    ),
    6: "rank:int fused_activation_function:byte asymmetric_quantize_inputs:bool",
    7: "fused_activation_function:byte asymmetric_quantize_inputs:bool",
    8: (
        "fused_activation_function:byte weights_format:byte keep_num_dims:bool "
        "asymmetric_quantize_inputs:bool quantized_bias_type:byte"
    ),
    9: "beta:float",
    10: "axis:int fused_activation_function:byte",
    11: "fused_activation_function:byte pot_scale_int16:bool=1",
    12: "fused_activation_function:byte",
    13: "radius:int bias:float alpha:float beta:float",
    14: (
        "fused_activation_function:byte cell_clip:float proj_clip:float kernel_type:byte "
        "asymmetric_quantize_inputs:bool"
    ),
    15: "new_height:int new_width:int align_corners:bool half_pixel_centers:bool",
    16: "subgraph:uint",
    17: "new_shape:[int]",
    19: "block_size:int",
    21: "fused_activation_function:byte",
    23: "axis:int batch_dims:int",
    27: "keep_dims:bool",
    28: "fused_activation_function:byte pot_scale_int16:bool=1",
    29: "fused_activation_function:byte",
    30: "squeeze_dims:[int]",
    31: ("time_major:bool fused_activation_function:byte asymmetric_quantize_inputs:bool"),
    32: (
        "begin_mask:int end_mask:int ellipsis_mask:int new_axis_mask:int shrink_axis_mask:int "
        "offset:bool"
    ),
    35: "num_splits:int",
    37: "in_data_type:byte out_data_type:byte",
    40: "output_type:byte",
    49: (
        "padding:byte stride_w:int stride_h:int fused_activation_function:byte "
        "quantized_bias_type:byte"
    ),
    55: "out_type:byte",
    57: "output_type:byte",
    58: "min:float max:float num_bits:int narrow_range:bool",
    59: "values_count:int axis:int",
    61: "axis:int",
    64: "num:int axis:int",
    69: (
        "fused_activation_function:byte cell_clip:float proj_clip:float merge_outputs:bool "
        "time_major:bool=1 asymmetric_quantize_inputs:bool"
    ),
    70: (
        "time_major:bool fused_activation_function:byte merge_outputs:bool "
        "asymmetric_quantize_inputs:bool"
    ),
    71: (
        "fused_activation_function:byte cell_clip:float proj_clip:float time_major:bool "
        "asymmetric_quantize_inputs:bool diagonal_recurrent_tensors:bool"
    ),
    74: "align_corners:bool half_pixel_centers:bool",
    75: "alpha:float",
    77: "mode:byte",
    79: "num_splits:int",
    80: "idx_out_type:byte=2",
    87: "seq_dim:int batch_dim:int",
    92: "then_subgraph_index:int else_subgraph_index:int",
    93: "cond_subgraph_index:int body_subgraph_index:int",
    94: "block_size:int",
    101: "adj_x:bool adj_y:bool asymmetric_quantize_inputs:bool",
    102: "exclusive:bool reverse:bool",
    103: "init_subgraph_index:int",
    106: (
        "padding:byte stride_d:int stride_w:int stride_h:int fused_activation_function:byte "
        "dilation_d_factor:int=1 dilation_w_factor:int=1 dilation_h_factor:int=1"
    ),
    111: "container:string shared_name:string",
    115: "boundaries:[float]",
    116: "approximate:bool",
}

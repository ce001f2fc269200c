"""The kinds of layers and of activations, numbered as Darknet's ``struct layer`` numbers them."""

from __future__ import annotations

from enum import IntEnum


class LAYERTYPE(IntEnum):
    """What a layer is; the order is that of Darknet's `LAYER_TYPE`."""

    CONVOLUTIONAL = 0
    DECONVOLUTIONAL = 1
    CONNECTED = 2
    MAXPOOL = 3
    SOFTMAX = 4
    DETECTION = 5
    DROPOUT = 6
    CROP = 7
    ROUTE = 8
    COST = 9
    NORMALIZATION = 10
    AVGPOOL = 11
    LOCAL = 12
    SHORTCUT = 13
    ACTIVE = 14
    RNN = 15
    GRU = 16
    LSTM = 17
    CRNN = 18
    BATCHNORM = 19
    NETWORK = 20
    XNOR = 21
    REGION = 22
    YOLO = 23
    REORG = 24
    UPSAMPLE = 25
    LOGXENT = 26
    L2NORM = 27
    BLANK = 28


class ACTIVATION(IntEnum):
    """What is applied to a layer's sums; those from SELU on are of later forks of Darknet."""

    LOGISTIC = 0
    RELU = 1
    RELIE = 2
    LINEAR = 3
    RAMP = 4
    TANH = 5
    PLSE = 6
    LEAKY = 7
    ELU = 8
    LOGGY = 9
    STAIR = 10
    HARDTAN = 11
    LHTAN = 12
    SELU = 13
    RELU6 = 14
    SWISH = 15
    MISH = 16
    GELU = 17


SECTIONS = {
    "convolutional": LAYERTYPE.CONVOLUTIONAL,
    "conv": LAYERTYPE.CONVOLUTIONAL,
    "deconvolutional": LAYERTYPE.DECONVOLUTIONAL,
    "deconv": LAYERTYPE.DECONVOLUTIONAL,
    "connected": LAYERTYPE.CONNECTED,
    "conn": LAYERTYPE.CONNECTED,
    "maxpool": LAYERTYPE.MAXPOOL,
    "max": LAYERTYPE.MAXPOOL,
    "avgpool": LAYERTYPE.AVGPOOL,
    "avg": LAYERTYPE.AVGPOOL,
    "softmax": LAYERTYPE.SOFTMAX,
    "soft": LAYERTYPE.SOFTMAX,
    "dropout": LAYERTYPE.DROPOUT,
    "crop": LAYERTYPE.CROP,
    "cost": LAYERTYPE.COST,
    "route": LAYERTYPE.ROUTE,
    "shortcut": LAYERTYPE.SHORTCUT,
    "activation": LAYERTYPE.ACTIVE,
    "rnn": LAYERTYPE.RNN,
    "region": LAYERTYPE.REGION,
    "yolo": LAYERTYPE.YOLO,
    "reorg": LAYERTYPE.REORG,
    "upsample": LAYERTYPE.UPSAMPLE,
    "l2norm": LAYERTYPE.L2NORM,
}

"""``relay.testing.darknet``: Darknet's networks and pictures under their classic names."""

from slipway.lazy import offer

_HOMES = {
    "ACTIVATION": "slipway.frontends.darknet.kinds:ACTIVATION",
    "LAYERTYPE": "slipway.frontends.darknet.kinds:LAYERTYPE",
    "__darknetffi__": "slipway.frontends.darknet.pictures:__darknetffi__",
    "convert_image": "slipway.frontends.darknet.pictures:convert_image",
    "load_image": "slipway.frontends.darknet.pictures:load_image",
    "load_image_color": "slipway.frontends.darknet.pictures:load_image_color",
    "load_network": "slipway.frontends.darknet.network:load_network",
}
__getattr__, __dir__ = offer(__name__, _HOMES)

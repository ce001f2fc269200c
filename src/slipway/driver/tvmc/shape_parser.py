"""``tvmc.shape_parser``: shapes of inputs as the command line writes them."""

from slipway.driver.tvmc.arguments import shapes_of as parse_shape_string

__all__ = ["parse_shape_string"]

"""The version of Slipway, also written into every artifact it makes."""

VERSION = "0.1.0"

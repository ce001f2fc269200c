"""The version of Slipway, also written into every artifact it makes, and its distribution's name.

On package indexes `slipway` is another project: what is installed is called `DISTRIBUTION`, what
is imported stays `slipway`.
"""

VERSION = "0.1.0"
DISTRIBUTION = "slipway-ml"


def install_line(extra: str = "") -> str:
    """Return the command that installs Slipway, or what one of its extras needs."""
    return f"pip install '{DISTRIBUTION}[{extra}]'" if extra else f"pip install {DISTRIBUTION}"

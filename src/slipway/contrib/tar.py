"""Archives of objects; see `slipway.toolchain.tarball`."""

from slipway.toolchain.tarball import normalize_file_list_by_unpacking_tars, tar, untar

__all__ = ["normalize_file_list_by_unpacking_tars", "tar", "untar"]

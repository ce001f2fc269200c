"""Models that TensorFlow publishes as archives, under classic's names."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

from slipway.errors import ArgumentTypeError, DownloadError
from slipway.toolchain.download import download_testdata
from slipway.toolchain.unpack import unpack_tar


def convert_to_list(x: Any) -> list[Any]:
    """Return `x` where it is a list, else a list of it."""
    return x if isinstance(x, list) else [x]


def vmobj_to_list(o: object) -> list[Any]:
    """Return what a virtual machine gave, an array or a tuple of such, as a flat list of arrays."""
    if isinstance(o, (list, tuple)):
        return [array for value in o for array in vmobj_to_list(value)]
    if not hasattr(o, "numpy"):
        raise ArgumentTypeError(f"o is a {type(o).__name__}, not what a virtual machine gave")
    return [o.numpy()]


def ProcessGraphDefParam(graph_def: Any) -> Any:
    """Return a GraphDef as TensorFlow's own class has it, whatever class of its fields it is."""
    import tensorflow

    wanted = tensorflow.compat.v1.GraphDef
    if isinstance(graph_def, wanted):
        return graph_def
    if not hasattr(graph_def, "SerializeToString"):
        raise ArgumentTypeError(f"graph_def must be a GraphDef, not a {type(graph_def).__name__}")
    made = wanted()
    made.ParseFromString(graph_def.SerializeToString())
    return made


def AddShapesToGraphDef(session: Any, out_node: str | list[str]) -> Any:
    """Return a session's graph with variables as constants, and with the shapes of its nodes."""
    import tensorflow

    return tensorflow.compat.v1.graph_util.convert_variables_to_constants(
        session, session.graph.as_graph_def(add_shapes=True), convert_to_list(out_node)
    )


class NodeLookup:
    """Names of ImageNet's classes by their number, from the two files that come with Inception.

    `label_lookup_path` is the .pbtxt of numbers and identifiers, `uid_lookup_path` the text of
    identifiers and names.
    """

    def __init__(self, label_lookup_path: str, uid_lookup_path: str) -> None:
        lines = Path(uid_lookup_path).read_text(encoding="utf-8").splitlines()
        pairs = (line.split(None, 1) for line in lines)
        names = {pair[0]: pair[1].strip() for pair in pairs if len(pair) == 2}
        entry = re.compile(r'target_class:\s*(\d+)\s+target_class_string:\s*"([^"]*)"')
        text = Path(label_lookup_path).read_text(encoding="utf-8")
        self.node_lookup = {int(n): names[uid] for n, uid in entry.findall(text) if uid in names}

    def id_to_string(self, node_id: int) -> str:
        """Return the name of a class; "" for one that the files do not name."""
        return self.node_lookup.get(int(node_id), "")


def get_workload_official(model_url: str, model_sub_path: str, retries: int = 5) -> str:
    """Fetch an archive (.tgz, .gz, .zip), unpack it, and return the path of a file in it.

    `retries` is classic's: the fetching decides on its own what it tries again.  Raises
    DownloadError where the archive cannot be had, or lacks the file.
    """
    del retries
    archive = Path(download_testdata(model_url, Path(model_url).name, module=["tf", "official"]))
    folder = archive.parent
    if archive.suffix in (".tgz", ".gz", ".tar"):
        unpack_tar(archive, folder)
    elif archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(folder)
    else:
        raise DownloadError(f"{model_url} is no archive: its name ends in .tgz, .gz or .zip")
    found = folder / model_sub_path
    if not found.exists():
        raise DownloadError(f"the archive {model_url} holds no {model_sub_path}")
    return str(found)

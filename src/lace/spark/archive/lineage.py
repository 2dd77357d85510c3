"""What a commit read and wrote as an event of OpenLineage, for catalogs and orchestrators.

Rule: an event is made of the log alone, so it can be made again at any time, and has the same run id each time.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from lace.spark.archive.versions import Commit, DataFile, Input
from lace.spark.source.places import is_remote, local_path

Json = dict[str, object]
_SPEC = "https://openlineage.io/spec"
_EVENT = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_STATISTICS = f"{_SPEC}/facets/1-0-2/OutputStatisticsOutputDatasetFacet.json"
_VERSION = f"{_SPEC}/facets/1-0-1/DatasetVersionDatasetFacet.json"
_READS = {"add": (), "init": (), "publish": ("records", "selected")}  # every other operation reads the records
_INNER = ("contents", "contents_gone", "forgotten", "relations", "removed")  # tables that only Lace reads


def run_event(root: str, commit: Commit, producer: str) -> Json:
    """A commit of the archive at `root` as one run that is complete."""
    inputs = [_dataset(*_named(item.address)) for item in _inputs(commit)]
    inputs += [_table(root, name, producer, commit.version - 1) for name in _READS.get(commit.operation, ("records",))]
    return {
        "eventType": "COMPLETE",
        "eventTime": commit.time,
        "run": {"runId": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{_address(root)}#{commit.version}"))},
        "job": {"namespace": _address(root), "name": commit.operation},
        "inputs": inputs,
        "outputs": [
            {**_table(root, name, producer, commit.version), "outputFacets": _statistics(files, producer)}
            for name, files in sorted(_by_table(commit.added).items())
        ],
        "producer": producer,
        "schemaURL": _EVENT,
    }


def _inputs(commit: Commit) -> Iterable[Input]:
    return () if commit.batch is None else commit.batch.inputs.values()


def _by_table(files: Iterable[DataFile]) -> dict[str, list[DataFile]]:
    found: dict[str, list[DataFile]] = {}
    for file in files:
        if file.table not in _INNER:
            found.setdefault(file.table, []).append(file)
    return found


def _statistics(files: list[DataFile], producer: str) -> Json:
    counts = {"rowCount": sum(f.rows for f in files), "size": sum(f.bytes for f in files), "fileCount": len(files)}
    return {"outputStatistics": {"_producer": producer, "_schemaURL": _STATISTICS, **counts}}


def _table(root: str, name: str, producer: str, version: int) -> Json:
    namespace, path = _named(f"{root}/data/{name}")
    facet = {"_producer": producer, "_schemaURL": _VERSION, "datasetVersion": str(version)}
    return {**_dataset(namespace, path), "facets": {"version": facet}}


def _dataset(namespace: str, name: str) -> Json:
    return {"namespace": namespace, "name": name}


def _named(address: str) -> tuple[str, str]:
    """A file's namespace and name, as OpenLineage names them: `s3://bucket` and the key, `file` and the path."""
    if not is_remote(address):
        return "file", str(local_path(address).absolute())
    parts = urlsplit(address)
    path = parts.path if parts.scheme in ("hdfs", "viewfs") else parts.path.lstrip("/")
    return f"{parts.scheme}://{parts.netloc}", path


def _address(root: str) -> str:
    return root if is_remote(root) else Path(local_path(root)).absolute().as_uri()

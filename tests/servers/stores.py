"""Object stores: S3 (moto), Google Cloud Storage (fake-gcs-server) and Azure's Data Lake (Azurite), on 127.0.0.1.

Each is a process of its own. Iceberg reaches it through a proxy, which counts requests and fails them; tests look at
its objects past both, with another client.
"""

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from doubles.faults import FaultProxy
from harness.jars import ROOT, build_jars
from harness.jvm import ENVIRONMENT
from harness.programs import free_port, start_logging, wait_for_end, wait_until_it_listens
from harness.used import used

from servers.aws import REGION, catalog_on_s3, start_moto
from servers.process import end, start_server

KINDS = ("s3", "gcs", "adls")
BUCKET = "lake"


class Objects(Protocol):
    """A bucket's objects by their names."""

    def put(self, name: str, content: bytes) -> None: ...
    def get(self, name: str) -> bytes: ...
    def delete(self, name: str) -> None: ...
    def names(self, prefix: str) -> list[str]: ...


@dataclass
class ObjectStore:
    """A running store with one bucket (a container, on Azure).

    Attributes:
        kind: of KINDS.
        root: of the bucket, such as s3://lake.
        options: a catalog's; with a warehouse.
        environment: variables of the JVM.
        jars: what a user adds to Spark for it.
        proxy: between Iceberg and the server.
        objects: the bucket past the proxy.
        stop: ends the server.
        unfinished: ends the uploads in parts that were begun, as who has the bucket's rights may, and returns what was
            in each; where the store tells.
    """

    kind: str
    root: str
    options: dict[str, str]
    environment: dict[str, str]
    jars: list[Path]
    proxy: FaultProxy
    objects: Objects
    stop: Callable[[], None]
    unfinished: Callable[[], list[bytes]] | None = None

    def put(self, uri: str, content: bytes) -> str:
        """Writes an object; returns its URI."""
        self.objects.put(self._name(uri), content)
        return uri

    def get(self, uri: str) -> bytes:
        return self.objects.get(self._name(uri))

    def delete(self, uri: str) -> None:
        self.objects.delete(self._name(uri))

    def below(self, folder: str) -> list[str]:
        """The URIs of all objects in a folder."""
        return [f"{self.root}/{name}" for name in self.objects.names(self._name(f"{folder}/"))]

    def _name(self, uri: str) -> str:
        return uri.removeprefix(f"{self.root}/")


def start_store(kind: str, folder: Path) -> ObjectStore:
    """Starts a store of this kind; its files and its log are in the folder."""
    return {"s3": _s3, "gcs": _gcs, "adls": _adls}[kind](folder)


def _s3(folder: Path) -> ObjectStore:
    moto = start_moto(folder / "log")
    options = catalog_on_s3(moto, BUCKET)
    proxy = FaultProxy(moto.port).start()
    client = moto.boto("s3")

    class Bucket:
        def put(self, name: str, content: bytes) -> None:
            client.put_object(Bucket=BUCKET, Key=name, Body=content)

        def get(self, name: str) -> bytes:
            return bytes(client.get_object(Bucket=BUCKET, Key=name)["Body"].read())

        def delete(self, name: str) -> None:
            client.delete_object(Bucket=BUCKET, Key=name)

        def names(self, prefix: str) -> list[str]:
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
            return [one["Key"] for page in pages for one in page.get("Contents", [])]

    def unfinished() -> list[bytes]:
        contents = []
        for one in client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []):
            upload = {"Bucket": BUCKET, "Key": one["Key"], "UploadId": one["UploadId"]}
            parts = client.list_parts(**upload).get("Parts", [])
            if parts:
                told = [{"PartNumber": part["PartNumber"], "ETag": part["ETag"]} for part in parts]
                client.complete_multipart_upload(**upload, MultipartUpload={"Parts": told})
                contents.append(Bucket().get(one["Key"]))
                Bucket().delete(one["Key"])
            else:
                client.abort_multipart_upload(**upload)
                contents.append(b"")
        return contents

    return ObjectStore(
        "s3",
        f"s3://{BUCKET}",
        {**options, "s3.endpoint": proxy.url, "s3.multipart.part-size-bytes": str(5 << 20)},
        # a folder has no catalog whose properties would say where S3 is
        {**ENVIRONMENT, "AWS_REGION": REGION, "AWS_ENDPOINT_URL_S3": proxy.url},
        build_jars("kms-jars", "iceberg-aws-bundle-*.jar"),
        proxy,
        Bucket(),
        _both(proxy, moto.stop),
        unfinished,
    )


def _gcs(folder: Path) -> ObjectStore:
    program = _path_of("go-server.sh", "gcs")
    locked = (ROOT / "tests" / "servers" / "gcs" / "go.mod").read_text()
    used("fake-gcs-server", locked.partition("/fake-gcs-server v")[2].split()[0])
    process, address = start_server([program], folder / "log")
    port = int(address.rpartition(":")[2])

    def ask(method: str, path: str, body: bytes = b"") -> bytes:
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            content = answer.read()
            assert answer.status < 300, (method, path, answer.status, content)
            return content
        finally:
            connection.close()

    ask("POST", "/storage/v1/b?project=tests", json.dumps({"name": BUCKET}).encode())
    proxy = FaultProxy(port).start()
    # where it sends the rest of an upload
    ask("PUT", "/_internal/config", json.dumps({"externalUrl": proxy.url}).encode())

    class Bucket:
        def put(self, name: str, content: bytes) -> None:
            path = f"/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={quote(name, safe='')}"
            ask("POST", path, content)

        def get(self, name: str) -> bytes:
            return ask("GET", f"/storage/v1/b/{BUCKET}/o/{quote(name, safe='')}?alt=media")

        def delete(self, name: str) -> None:
            ask("DELETE", f"/storage/v1/b/{BUCKET}/o/{quote(name, safe='')}")

        def names(self, prefix: str) -> list[str]:
            found: list[str] = []
            page: str | None = ""
            while page is not None:
                query = f"prefix={quote(prefix, safe='')}&pageToken={quote(page, safe='')}"
                answer = json.loads(ask("GET", f"/storage/v1/b/{BUCKET}/o?{query}"))
                found += [one["name"] for one in answer.get("items", [])]
                page = answer.get("nextPageToken") or None
            return found

    return ObjectStore(
        "gcs",
        f"gs://{BUCKET}",
        {
            "warehouse": f"gs://{BUCKET}/warehouse",
            "io-impl": "org.apache.iceberg.gcp.gcs.GCSFileIO",
            "gcs.service.host": proxy.url,
            "gcs.project-id": "tests",
            "gcs.no-auth": "true",
        },
        dict(ENVIRONMENT),
        build_jars("kms-jars", "iceberg-gcp-bundle-*.jar"),
        proxy,
        Bucket(),
        _both(proxy, partial(end, process)),
    )


ACCOUNT = "account"
ACCOUNT_KEY = "b25seS1mb3ItdGVzdHM="
_HOST = f"{ACCOUNT}.dfs.core.windows.net"


def _adls(folder: Path) -> ObjectStore:
    from azure.storage.blob import ContainerClient
    from doubles.dfs import DfsFront

    home = _path_of("azurite.sh")
    package = json.loads((home / "node_modules/azurite/package.json").read_text())
    used("Azurite", package["version"])
    port = free_port()
    command = ["node", str(home / "node_modules/azurite/dist/src/blob/main.js")]
    command += ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    command += ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    log = folder / "log"
    accounts = {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{ACCOUNT_KEY}"}
    process = start_logging(command, log, accounts, folder)
    wait_until_it_listens(process, port, log)
    credential = {"account_name": ACCOUNT, "account_key": ACCOUNT_KEY}
    container = ContainerClient(f"http://127.0.0.1:{port}/{ACCOUNT}", BUCKET, credential)
    container.create_container()
    proxy = DfsFront(port, container)
    proxy.start()

    class Bucket:
        def put(self, name: str, content: bytes) -> None:
            container.upload_blob(name, content, overwrite=True)

        def get(self, name: str) -> bytes:
            return bytes(container.download_blob(name).readall())

        def delete(self, name: str) -> None:
            container.delete_blob(name)

        def names(self, prefix: str) -> list[str]:
            return [blob.name for blob in container.list_blobs(name_starts_with=prefix)]

    def stop() -> None:
        process.terminate()
        wait_for_end(process)

    root = f"abfss://{BUCKET}@{_HOST}"
    return ObjectStore(
        "adls",
        root,
        {
            "warehouse": f"{root}/warehouse",
            "io-impl": "org.apache.iceberg.azure.adlsv2.ADLSFileIO",
            f"adls.connection-string.{_HOST}": f"{proxy.url}/{ACCOUNT}",
            "adls.auth.shared-key.account.name": ACCOUNT,
            "adls.auth.shared-key.account.key": ACCOUNT_KEY,
        },
        dict(ENVIRONMENT),
        [jar for jar in build_jars("kms-jars") if not jar.name.startswith("iceberg-")],
        proxy,
        Bucket(),
        _both(proxy, stop),
    )


def _path_of(script: str, *arguments: str) -> Path:
    """What `make nightly-tools` installed outside of this tree."""
    told = subprocess.run(
        [ROOT / "dev" / script, *arguments, "path"], check=True, capture_output=True, text=True
    )
    path = Path(told.stdout.strip())
    if not path.exists():
        raise FileNotFoundError(f"no {path}: run `make nightly-tools`")
    return path


def _both(proxy: FaultProxy, stop: Callable[[], Any]) -> Callable[[], None]:
    def both() -> None:
        proxy.stop()
        stop()

    return both

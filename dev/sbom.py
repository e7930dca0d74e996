"""Writes the release's software bill of materials (CycloneDX 1.6, JSON): what wheel and jars hold, and what they need.

Usage: python dev/sbom.py COMPONENTS_JSON WHEEL OUT. The first is what Gradle's task `release` writes. Versions of
Python packages are those that dev/constraints.txt locks, with which the release was tested. SOURCE_DATE_EPOCH is its
time: the same release has the same bill, byte by byte.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import uuid
import zipfile
from collections.abc import Iterator
from datetime import datetime, timezone
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK = Path(__file__).resolve().parent / "constraints.txt"
LICENSE = LicenseExpression("Apache-2.0")
OURS = {"test", "lint", "bench", "dist", "docs"}  # extras that no user needs


def main(components: Path, wheel: Path, out: Path) -> None:
    """Write the bill."""
    files = zipfile.Path(wheel)
    (told,) = (PathDistribution(one) for one in files.iterdir() if one.name.endswith("dist-info"))
    python = of_wheel(told, file_sha256(wheel))
    bom = Bom(
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"{python.purl}#{python.hashes[0].content}")
    )
    bom.metadata.component = python
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    bom.metadata.timestamp = datetime.fromtimestamp(epoch, timezone.utc)
    known: dict[str, Component] = {}

    def add(component: Component) -> Component:
        return known.setdefault(str(component.purl), component)

    inside = []
    for module in json.loads(components.read_text("utf-8")):
        module["sha256"] = file_sha256(components.parent / module["jar"])
        jar = add(maven(module, licenses=[LICENSE]))
        # In the jar, under names of our own: they are part of it, and nothing has to bring them.
        for one in module["bundled"]:
            held = maven(one)
            held.bom_ref.value = f"{jar.purl}#{held.purl}"
            jar.components.add(held)
        bom.register_dependency(jar, [add(maven(one)) for one in module["needs"]])
        if (files / "pyspark_iceberg_crypto" / "jars" / module["jar"]).exists():
            inside.append(jar)
    needs = [add(one) for one in of_python(told)]
    bom.components.update(known.values())
    bom.register_dependency(python, [*inside, *needs])
    out.write_text(JsonV1Dot6(bom).output_as_string(indent=2) + "\n", encoding="utf-8")


def component(purl: PackageURL, sha256: str | None = None, **more: Any) -> Component:
    """Return that of a library."""
    return Component(
        type=ComponentType.LIBRARY,
        name=purl.name,
        version=purl.version,
        purl=purl,
        bom_ref=str(purl),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=sha256)] if sha256 else [],
        **more,
    )


def maven(one: dict[str, Any], **more: Any) -> Component:
    """Return the component of a Maven artifact, as Gradle tells it."""
    purl = PackageURL("maven", one["group"], one["name"], one["version"])
    scope = ComponentScope.REQUIRED
    return component(purl, one["sha256"], group=one["group"], scope=scope, **more)


def of_wheel(told: PathDistribution, sha256: str) -> Component:
    """Return the component of the Python package."""
    addresses = dict(one.split(", ") for one in told.metadata.get_all("Project-URL") or [])
    home = ExternalReference(type=ExternalReferenceType.VCS, url=XsUri(addresses["Repository"]))
    return component(
        PackageURL("pypi", None, told.name, told.version),
        sha256,
        description=told.metadata["Summary"],
        licenses=[LICENSE],
        external_references=[home],
    )


def of_python(told: PathDistribution) -> Iterator[Component]:
    """Go through the packages that the wheel names, those of its extras for users as optional ones."""
    lines = LOCK.read_text("utf-8").splitlines()
    locked = dict(line.partition(" ;")[0].split("==") for line in lines if line[0] != "#")
    for one in map(Requirement, told.requires or []):
        extra = str(one.marker).partition('extra == "')[2].rstrip('"') if one.marker else ""
        if extra in OURS or one.name == told.name:
            continue
        scope = ComponentScope.OPTIONAL if extra else ComponentScope.REQUIRED
        purl = PackageURL("pypi", None, one.name, locked[canonicalize_name(one.name)])
        yield component(purl, scope=scope)


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

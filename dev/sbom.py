"""Writes the release's software bill of materials (CycloneDX 1.6, JSON): what wheel and jars hold, and what they need.

Usage: python dev/sbom.py COMPONENTS_JSON WHEEL OUT. The first is what Gradle's task `release` writes. Versions of
Python packages are those that dev/constraints.txt locks, with which the release was tested. SOURCE_DATE_EPOCH is its
time: the same release has the same bill, byte by byte.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import uuid
import zipfile
from collections.abc import Iterator
from datetime import datetime, timezone
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

LOCK = Path(__file__).resolve().parent / "constraints.txt"
LICENSE = LicenseExpression("Apache-2.0")


def main(components: Path, wheel: Path, out: Path) -> None:
    """Write the bill."""
    modules = json.loads(components.read_text("utf-8"))
    python = of_wheel(wheel)
    bom = Bom(
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"{python.purl}#{python.hashes[0].content}")
    )
    bom.metadata.component = python
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    bom.metadata.timestamp = datetime.fromtimestamp(epoch, timezone.utc)
    known: dict[str, Component] = {}

    def add(component: Component) -> Component:
        return known.setdefault(str(component.purl), component)

    jars = []
    for module in modules:
        jar = maven(module, ComponentScope.REQUIRED, file_sha256(components.parent / module["jar"]))
        jar.licenses = [LICENSE]
        jars.append(add(jar))
        # In the jar, under names of our own: they are part of it, and nothing has to bring them.
        for one in module["bundled"]:
            held = maven(one, ComponentScope.REQUIRED, one["sha256"])
            held.bom_ref.value = f"{jar.purl}#{held.purl}"
            jar.components.add(held)
        needed = [
            add(maven(one, ComponentScope.REQUIRED, one["sha256"])) for one in module["needs"]
        ]
        bom.register_dependency(jar, needed)
    needs = [add(one) for one in of_python(wheel)]
    inside = [jar for jar in jars if holds(wheel, str(jar.name))]
    bom.components.update(known.values())
    bom.register_dependency(python, [*inside, *needs])
    out.write_text(JsonV1Dot6(bom).output_as_string(indent=2) + "\n", encoding="utf-8")


def maven(one: dict[str, Any], scope: ComponentScope, sha256: str | None) -> Component:
    """Return the component of a Maven artifact."""
    purl = PackageURL("maven", one["group"], one["name"], one["version"])
    return Component(
        type=ComponentType.LIBRARY,
        group=one["group"],
        name=one["name"],
        version=one["version"],
        purl=purl,
        bom_ref=str(purl),
        scope=scope,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=sha256)] if sha256 else [],
    )


def of_wheel(wheel: Path) -> Component:
    """Return the component of the Python package."""
    told = metadata(wheel)
    purl = PackageURL("pypi", None, told["Name"], told["Version"])
    (home,) = (u.split(", ")[1] for u in told.get_all("Project-URL") if u.startswith("Repository,"))
    return Component(
        type=ComponentType.LIBRARY,
        name=told["Name"],
        version=told["Version"],
        description=told["Summary"],
        licenses=[LICENSE],
        purl=purl,
        bom_ref=str(purl),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=file_sha256(wheel))],
        external_references=[ExternalReference(type=ExternalReferenceType.VCS, url=XsUri(home))],
    )


def of_python(wheel: Path) -> Iterator[Component]:
    """Go through the packages that the wheel names, those of its extras for users as optional ones."""
    locked = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", LOCK.read_text("utf-8"), re.MULTILINE))
    ours = {"test", "lint", "bench", "dist", "docs"}
    for line in metadata(wheel).get_all("Requires-Dist") or []:
        name = re.match(r"[\w.-]+", line)
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        if name is None or (extra and extra[1] in ours) or name[0].startswith("pyspark-iceberg"):
            continue
        version = locked[name[0].lower().replace("_", "-")]
        purl = PackageURL("pypi", None, name[0], version)
        yield Component(
            type=ComponentType.LIBRARY,
            name=name[0],
            version=version,
            purl=purl,
            bom_ref=str(purl),
            scope=ComponentScope.OPTIONAL if extra else ComponentScope.REQUIRED,
        )


def metadata(wheel: Path) -> Any:
    """Read the METADATA of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(archive.read(name).decode("utf-8"))


def holds(wheel: Path, artifact: str) -> bool:
    """Return whether a wheel carries an artifact's jar."""
    with zipfile.ZipFile(wheel) as archive:
        return any(f"/jars/{artifact}-" in name for name in archive.namelist())


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

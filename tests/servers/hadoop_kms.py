"""Hadoop KMS in a process of its own, on 127.0.0.1 and a free port, with simple authentication.

Its administrator may do all but see keys; nobody may. Spark's user may do what the documents ask for.
What Ranger KMS (ranger_kms.py) has in common with it is here, too.
"""

import base64
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest
from harness.jars import build_jars
from harness.used import used_jar

from pyspark_iceberg_crypto import AccessDeniedError
from servers.process import Process, end, start_java

ADMIN, USER = "admin", "spark"

LOG = """
log4j.rootLogger=INFO, A
log4j.appender.A=org.apache.log4j.ConsoleAppender
log4j.appender.A.target=System.err
log4j.appender.A.layout=org.apache.log4j.PatternLayout
log4j.appender.A.layout.ConversionPattern=%d %p %c: %m%n
"""
MANAGED = ("CREATE", "DELETE", "ROLLOVER", "GET_KEYS", "GET_METADATA")
USED = ("GENERATE_EEK", "DECRYPT_EEK")
OPENED = "--add-opens=java.base/java.lang=ALL-UNNAMED"  # as Hadoop's own script has it
ACLS = {
    **{f"hadoop.kms.acl.{operation}": ADMIN for operation in MANAGED},
    **{f"hadoop.kms.acl.{operation}": " " for operation in ("GET", "SET_KEY_MATERIAL")},
    "default.key.acl.MANAGEMENT": ADMIN,
    "default.key.acl.READ": ADMIN,
    **{f"default.key.acl.{operation}": USER for operation in USED},
}


@dataclass
class KmsServer:
    """A running server with Hadoop KMS's REST interface. `stop` ends this process and no other."""

    process: Process
    port: int
    folder: Path

    def ask(
        self, method: str, path: str, body: Any = None, *, user: str = ADMIN
    ) -> tuple[int, Any]:
        """Asks it as a user: an oracle beside our own code. Returns the status and the answer."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(
                method,
                f"/kms/v1/{path}{'&' if '?' in path else '?'}user.name={user}",
                None if body is None else json.dumps(body),
                {"Content-Type": "application/json"},
            )
            answer = connection.getresponse()
            text = answer.read().decode()
            return answer.status, json.loads(text) if text.startswith(("{", "[")) else text
        finally:
            connection.close()

    def delete_key(self, name: str) -> None:
        assert self.ask("DELETE", f"key/{name}")[0] == 200

    def data_key(self, name: str, version: str, iv: bytes, material: bytes) -> bytes:
        """Decrypts an encrypted data key."""
        given = {"name": name, "iv": _base64(iv), "material": _base64(material)}
        path = f"keyversion/{version}/_eek?eek_op=decrypt"
        status, answer = self.ask("POST", path, given, user=USER)
        assert status == 200, answer
        return base64.urlsafe_b64decode(answer["material"] + "==")

    def await_denied(self, denied: bool) -> None:
        """Returns once Spark's user may not use keys, or may."""

        def check() -> None:
            path = "key/none/_eek?eek_op=generate&num_keys=1"
            assert (self.ask("GET", path, user=USER)[0] == 403) == denied

        eventually(check)

    def stop(self) -> None:
        end(self.process)


class HadoopKmsServer(KmsServer):
    """Hadoop's own."""

    def allow(self, acls: Mapping[str, str]) -> None:
        """Has these access control lists beside ACLS; it reads them again each second."""
        file = self.folder / "kms-acls.xml"
        write_settings(file, {**ACLS, **acls})
        later = time.time() + 2  # what is hardly newer than what it has read, it does not read
        os.utime(file, (later, later))

    def deny(self, denied: bool) -> None:
        """Takes the right to use keys from Spark's user, or gives it back; returns when that counts."""
        names = [f"hadoop.kms.acl.{operation}" for operation in USED]
        self.allow(dict.fromkeys(names, " ") if denied else {})
        self.await_denied(denied)


def start_hadoop_kms(
    folder: Path, settings: Mapping[str, str] | None = None, java: Sequence[str] = ()
) -> HadoopKmsServer:
    """Starts it; returns once it answers.

    Args:
        folder: gets its files; is made.
        settings: for kms-site.xml and core-site.xml.
        java: further options.
    """
    folder.mkdir()
    (folder / "log4j.properties").write_text(LOG)
    write_settings(folder / "kms-acls.xml", ACLS)
    given = [f"{name}={value}" for name, value in (settings or {}).items()]
    options = [
        OPENED,
        "-Djdk.jceks.iterationCount=10000",  # not 200,000 for each key at each change
        *java,
    ]
    jars = build_jars("hadoop-kms-server")
    arguments = [folder, *given]
    process, port = start_java("HadoopKmsServer", jars, arguments, folder / "log", options)
    used_jar("Hadoop KMS", jars, "hadoop-kms")
    return HadoopKmsServer(process, port, folder)


@dataclass
class Kdc:
    """A running KDC, of the realm TEST.LOCAL. `stop` ends this process and no other."""

    process: Process
    folder: Path

    @property
    def java(self) -> str:
        """The option for each JVM that uses it."""
        return f"-Djava.security.krb5.conf={self.folder / 'krb5.conf'}"

    def keytab(self, name: str) -> str:
        return str(self.folder / f"{name}.keytab")

    def stop(self) -> None:
        end(self.process)


def start_kdc(folder: Path) -> Kdc:
    """Starts a KDC for the KMS on localhost, and for its two users."""
    folder.mkdir()
    jars = build_jars("hadoop-kms-server")
    arguments = [folder, "HTTP/localhost", USER, ADMIN]
    process, _ = start_java("KdcServer", jars, arguments, folder / "log")
    return Kdc(process, folder)


def with_kerberos(kdc: Kdc) -> dict[str, str]:
    """The settings of a Hadoop KMS that takes no other login."""
    prefix = "hadoop.kms.authentication"
    return {
        f"{prefix}.type": "kerberos",
        f"{prefix}.kerberos.keytab": kdc.keytab("HTTP"),
        f"{prefix}.kerberos.principal": "HTTP/localhost",
    }


def write_settings(file: Path, settings: Mapping[str, str]) -> None:
    """Writes a configuration file of Hadoop's, at once: a server may be reading it."""
    properties = "".join(
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>\n"
        for name, value in settings.items()
    )
    written = file.with_suffix(".new")
    written.write_text(f"<configuration>\n{properties}</configuration>\n")
    written.replace(file)


def eventually(check: Callable[[], Any]) -> None:
    """Checks until it holds, for who may do what is read again each second."""
    end = time.monotonic() + 10
    while True:
        try:
            check()
            return
        except (AssertionError, pytest.fail.Exception, AccessDeniedError):
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode()

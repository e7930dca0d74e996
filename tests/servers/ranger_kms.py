"""Apache Ranger KMS in a process of its own, on 127.0.0.1 and a free port, with simple authentication.

Ranger's are the web application, the keys' store with its master key, and the authorizer, which has its policies from
a double of Ranger Admin. Not Ranger's are the web server (Jetty, not Tomcat) and the database (Derby in memory).
The authorizer is of Ranger 1.2.0: a newer one is not on Maven Central.

As with Hadoop KMS, the administrator may do all but see keys, and Spark's user what the documents ask for.
"""

import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from doubles.ranger_admin import SERVICE, RangerAdmin, policy
from harness.jars import SPARK_JARS, build_jars
from harness.used import used_jar

from servers.hadoop_kms import (
    ADMIN,
    LOG,
    MANAGED,
    OPENED,
    USED,
    USER,
    KmsServer,
    write_settings,
)
from servers.process import start_java

POLICIES = (policy(ADMIN, MANAGED), policy(USER, USED))
_LIBRARY = "com.sun.org.apache.xml.internal.security.utils"  # what its master key is encoded with


@dataclass
class RangerKmsServer(KmsServer):
    """A running server, and where it has its policies from."""

    admin: RangerAdmin

    def allow(self, *policies: dict[str, Any]) -> None:
        """Has these policies beside POLICIES; it asks for them each second."""
        self.admin.allow(*POLICIES, *policies)

    def deny(self, denied: bool) -> None:
        """Takes the right to use keys from Spark's user, or gives it back; returns when that counts."""
        self.admin.allow(*POLICIES[: 1 if denied else None])
        self.await_denied(denied)

    def stop(self) -> None:
        super().stop()
        self.admin.stop()


def start_ranger_kms(folder: Path) -> RangerKmsServer:
    """Starts it; returns once it answers.

    Args:
        folder: gets its files; is made.
    """
    folder.mkdir()
    jars = build_jars("ranger-kms-server")
    admin = RangerAdmin(_definition(jars)).start()
    admin.allow(*POLICIES)
    _configure(folder, admin.url)
    options = [
        OPENED,
        f"--add-exports=java.xml.crypto/{_LIBRARY}=ALL-UNNAMED",
        f"-Dlog4j.configuration={(folder / 'log4j.properties').as_uri()}",
        "-Declipselink.ddl-generation=create-tables",  # Ranger's own set-up is a script
    ]
    classes = [folder, *jars, *SPARK_JARS.glob("derby*.jar")]
    process, port = start_java("RangerKmsServer", classes, [folder], folder / "log", options)
    used_jar("Ranger KMS", jars, "ranger-kms")
    used_jar("Ranger KMS's authorizer", jars, "ranger-kms-plugin")
    return RangerKmsServer(process, port, folder, admin)


def _definition(jars: Sequence[Path]) -> dict[str, Any]:
    (jar,) = [jar for jar in jars if jar.name.startswith("ranger-plugins-common-")]
    with zipfile.ZipFile(jar) as archive:
        found: dict[str, Any] = json.loads(archive.read("service-defs/ranger-servicedef-kms.json"))
    return found


def _configure(folder: Path, admin: str) -> None:
    (folder / "log4j.properties").write_text(LOG)
    authorizer = "org.apache.ranger.authorization.kms.authorizer.RangerKmsAuthorizer"
    database, plugin = "ranger.ks.jpa.jdbc", "ranger.plugin.kms"
    files = {
        "kms-acls": {},
        "kms-site": {
            "hadoop.kms.key.provider.uri": "dbks://http@localhost:9292/kms",
            "hadoop.kms.authentication.type": "simple",
            "hadoop.kms.security.authorization.manager": authorizer,
        },
        "dbks-site": {
            "ranger.db.encrypt.key.password": "only-for-tests",
            f"{database}.url": "jdbc:derby:memory:kms;create=true",
            f"{database}.user": "kms",
            f"{database}.password": "only-for-tests",
            f"{database}.driver": "org.apache.derby.jdbc.EmbeddedDriver",
            f"{database}.dialect": "org.eclipse.persistence.platform.database.DerbyPlatform",
        },
        "ranger-kms-audit": {"xasecure.audit.is.enabled": "false"},
        "ranger-kms-security": {
            f"{plugin}.service.name": SERVICE,
            f"{plugin}.policy.rest.url": admin,
            f"{plugin}.policy.source.impl": "org.apache.ranger.admin.client.RangerAdminRESTClient",
            f"{plugin}.policy.pollIntervalMs": "1000",
            f"{plugin}.policy.cache.dir": str(folder),
        },
    }
    for name, settings in files.items():
        write_settings(folder / f"{name}.xml", settings)

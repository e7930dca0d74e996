"""What a command's session is made of: the profile, the environment, the command line; and its log."""

import grp
import os
import pwd
import re
import shlex
import stat
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from doubles.in_process import verify_json
from harness.jars import ROOT
from pyspark import SparkContext
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import ConfigurationError, VerifyReport, cli, settings
from pyspark_iceberg_crypto.cli import _profile, _session, _verify
from pyspark_iceberg_crypto.cli._session import Given
from pyspark_iceberg_crypto.demo import place
from pyspark_iceberg_crypto.jvm import _jvm
from pyspark_iceberg_crypto.jvm.artifacts import BUILDS
from pyspark_iceberg_crypto.kms import Keystore, Vault

FILE = """
catalogs:
  lake:
    type: rest
    uri: http://localhost:8181
    token: ${REST_TOKEN}
    s3:
      endpoint: http://localhost:9000
      path-style-access: true
    kms: {type: vault, address: "https://vault:8200", token-file: /etc/token}
    packages: [org.apache.iceberg:iceberg-aws-bundle:1.12.0]
  other: {type: hadoop, warehouse: /w}
spark:
  spark.driver.memory: 2g
packages: [org.postgresql:postgresql:42.7.8]
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a profile, and the wheel's jar."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("REST_TOKEN", "s3cret")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    monkeypatch.setattr(settings, "jar_path", lambda: tmp_path / f"{BUILDS[0].artifact}-0.jar")
    return tmp_path


@pytest.fixture
def profile(home: Path) -> Path:
    file = home / "iceberg-crypto.yaml"
    file.write_text(FILE)
    return file


def options(
    given: Given | None = None, *catalogs: str, also: tuple[str, ...] = ()
) -> dict[str, Any]:
    made = _session.builder_of(given or Given(), catalogs or ["lake"], also)
    return dict(made._options)


def of_lake(found: dict[str, Any]) -> dict[str, Any]:
    prefix = "spark.sql.catalog.lake."
    return {k.removeprefix(prefix): v for k, v in found.items() if k.startswith(prefix)}


def test_a_profile_says_all_there_is_to_a_catalog(profile: Path) -> None:
    found = options()
    assert of_lake(found) == {
        "type": "rest",
        "uri": "http://localhost:8181",
        "token": "s3cret",
        "s3.endpoint": "http://localhost:9000",
        "s3.path-style-access": "true",
        "encryption.kms-type": "vault",
        "encryption.kms.vault.address": "https://vault:8200",
        "encryption.kms.vault.transit-mount": "transit",
        "encryption.kms.vault.token-file": "/etc/token",
    }
    assert found["spark.driver.memory"] == "2g"
    packages = found["spark.jars.packages"].split(",")
    assert {"org.postgresql:postgresql:42.7.8", "org.apache.iceberg:iceberg-aws-bundle:1.12.0"} <= {
        *packages
    }
    assert BUILDS[0].iceberg_coordinate in packages
    assert "spark.sql.catalog.other" not in found


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(
    profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ICEBERG_CRYPTO_CATALOGS__LAKE__URI", "http://env")
    monkeypatch.setenv("ICEBERG_CRYPTO_CATALOGS__LAKE__S3__PATH_STYLE_ACCESS", "false")
    monkeypatch.setenv("ICEBERG_CRYPTO_CATALOGS__LAKE__KMS__ADDRESS", "https://env:8200")
    found = of_lake(options())
    assert (found["uri"], found["s3.path-style-access"]) == ("http://env", "false")
    assert found["encryption.kms.vault.address"] == "https://env:8200"
    found = of_lake(options(Given(catalog_conf=("uri=http://line",))))
    assert (found["uri"], found["type"]) == ("http://line", "rest")


def test_another_kms_or_kind_of_catalog_replaces_the_profiles_as_a_whole(profile: Path) -> None:
    kms = Keystore("/k.p12", password_env="P")
    given = Given(kms=lambda: kms, catalog_conf=("catalog-impl=x.Y",))
    found = of_lake(options(given))
    assert "type" not in found
    assert {k: v for k, v in found.items() if k.startswith("encryption.")} == kms.properties()
    found = of_lake(options(Given(catalog_conf=("encryption.kms-impl=x.Kms",))))
    assert [k for k in found if k.startswith("encryption.")] == ["encryption.kms-impl"]


def test_without_a_profile_the_environment_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TYPE": "hadoop", "WAREHOUSE": "/w", "KMS__TYPE": "keystore"}.items():
        monkeypatch.setenv(f"ICEBERG_CRYPTO_CATALOGS__LAKE__{name}", value)
    monkeypatch.setenv("ICEBERG_CRYPTO_CATALOGS__LAKE__KMS__PATH", "/k.p12")
    monkeypatch.setenv("ICEBERG_CRYPTO_CATALOGS__LAKE__KMS__PASSWORD_ENV", "P")
    found = of_lake(options())
    assert found["encryption.kms.keystore.password-env"] == "P"


def test_a_kms_is_added_to_a_catalog_of_spark_defaults(home: Path) -> None:
    (home / "conf").mkdir()
    conf = home / "conf" / "spark-defaults.conf"
    conf.write_text("spark.sql.catalog.lake x.Y\nspark.sql.catalog.lake.type rest\n")
    vault = Vault("https://vault", token_env="T")
    found = options(Given(kms=lambda: vault))
    assert of_lake(found) == vault.properties()
    assert "spark.sql.catalog.lake" not in found


def test_javas_options_of_spark_defaults_stay(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "conf").mkdir()
    proxy = "-Dhttps.proxyHost=proxy -Dhttps.proxyPort=3128"
    conf = home / "conf" / "spark-defaults.conf"
    conf.write_text(f"spark.driver.extraJavaOptions {proxy}\n")
    found = options()["spark.driver.extraJavaOptions"]
    assert found.startswith(f"{proxy} -Dlog4j2.")
    monkeypatch.setattr(place, "configure_spark", lambda *_, **__: None)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda builder: builder)
    demo: Any = place.Place(home).session("owner")
    found = demo._options["spark.driver.extraJavaOptions"]
    assert found.startswith(f"{proxy} -Dlog4j2.") and found.endswith(place.QUICK_START)


def test_a_name_of_two_parts_is_of_the_catalog_that_the_profile_has(profile: Path) -> None:
    found = options(Given(catalog_conf=("a=b",)), "spark_catalog", "lake")
    assert ("spark.sql.catalog.spark_catalog" in found, of_lake(found)["a"]) == (False, "b")


def test_a_second_catalog_is_the_profiles_alone(profile: Path) -> None:
    found = options(Given(catalog_conf=("uri=http://line",)), "lake", also=("other",))
    assert found["spark.sql.catalog.other.type"] == "hadoop"
    assert "spark.sql.catalog.other.uri" not in found


def test_secrets_are_not_on_the_jvms_command_line(profile: Path) -> None:
    address = "jdbc:postgresql://user:s3cret@db/lake"
    conf = (
        "spark.sql.catalog.lake.jdbc.password=p",
        "spark.a.token=s3cret",
        f"spark.hadoop.a={address}",
    )
    found = options(Given(conf=conf))
    found["spark.sql.catalog.lake.credential"] = "s3cret"
    secrets = _session.taken_secrets(found)
    assert found["spark.redaction.regex"].endswith("|spark[.]sql[.]catalog[.]lake[.]credential")
    assert (secrets.pop("spark.a.token"), secrets.pop("spark.hadoop.a")) == ("s3cret", address)
    assert {key.removeprefix("spark.sql.catalog.") for key in secrets} >= {
        "lake.token",
        "lake.jdbc.password",
    }
    assert not [value for value in found.values() if "s3cret" in str(value)]
    assert not [k for k in secrets if k.endswith(("-file", "-env"))]
    of_launch = {"spark.jars.repositories": "https://user:s3cret@host/repository"}
    assert _session.taken_secrets(of_launch) == {}  # spark-submit reads it before the JVM runs
    assert [*of_launch] == ["spark.jars.repositories", "spark.redaction.regex"]


ADDRESS = "jdbc:postgresql://user:plain@db/lake"
SECRETS = [
    "password",
    "token",
    "credential",
    "s3.secret-access-key",
    "s3.access-key",
    "s3.sse.key",
    "gcs.encryption-key",
    "gcs.decryption-key",
    "jdbc.password",
    "adls.sas-token.acme",
    "adls.connection-string.acme",
    "header.Authorization",
    "header.Cookie",
    "header.X-Api-Key",
    "hadoop.fs.s3a.secret.key",
    "hadoop.fs.azure.account.key.acme.dfs.core.windows.net",
    "hadoop.fs.azure.account.oauth2.client.secret.acme.dfs.core.windows.net",
    "hadoop.fs.azure.sas.box.acme.blob.core.windows.net",
    "hadoop.fs.azure.account.key.acme.z12.blob.storage.azure.net",
    "hadoop.fs.azure.encryption.encoded.client-provided-key.acme.dfs.core.windows.net",
    "executorEnv.AWS_SECRET_ACCESS_KEY",
    "uri",
]


@pytest.mark.parametrize("name", SECRETS)
def test_what_is_a_secret(name: str, home: Path) -> None:
    """One in a file that others may read is refused; a reference, or a private file, is right."""
    file = home / "iceberg-crypto.yaml"
    value = ADDRESS if name == "uri" else "plain"
    file.write_text(f"catalogs:\n  lake:\n    {name}: {value}\n")
    file.chmod(0o644)
    with pytest.raises(ConfigurationError, match=r"holds a secret") as caught:
        _profile.load()
    assert (name in caught.value.message, "plain" in str(caught.value)) == (True, False)
    assert f"chmod 600 {file}" in caught.value.hint
    file.chmod(0o600)
    assert _profile.load().catalog("lake").properties == {name: value}
    assert "plain" not in repr(_profile.load()) + repr(_profile.load().catalog("lake"))
    file.write_text(f"catalogs:\n  lake:\n    {name}: ${{REST_TOKEN}}\n")
    file.chmod(0o644)
    assert _profile.load().catalog("lake").properties == {name: "s3cret"}


def test_the_documents_have_spark_hide_each_secret() -> None:
    (regex,) = re.findall(
        r"spark\.redaction\.regex (\S+)", (ROOT / "docs/deploying.md").read_text()
    )
    shown = [f"spark.sql.catalog.lake.{name}" for name in [*SECRETS, "encryption.kms.pkcs11.pin"]]
    assert [one for one in shown if not re.search(regex, one)] == ["spark.sql.catalog.lake.uri"]
    assert re.search(regex, ADDRESS) and not re.search(regex, "http://localhost:8181/lake@main")


NAMES = {0: "root", 1000: "alice", 1001: "bob"}  # of users, and of the group that each has alone
STAFF = 50


@pytest.fixture
def become(profile: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`become(user, owner, group)`: who loads the profile, and whose it is; its mode is the file's."""

    def become(user: int, owner: int, group: int) -> None:
        real = Path.stat

        def stat_of(path: Path, **options: Any) -> os.stat_result:
            found = list(real(path, **options))[:10]
            if path == profile:
                found[stat.ST_UID], found[stat.ST_GID] = owner, group
            return os.stat_result(found)

        groups = {**NAMES, STAFF: "staff"}
        monkeypatch.setattr(Path, "stat", stat_of)
        monkeypatch.setattr(os, "getuid", lambda: user)
        monkeypatch.setattr(pwd, "getpwuid", lambda of: SimpleNamespace(pw_name=NAMES[of]))
        monkeypatch.setattr(grp, "getgrgid", lambda of: SimpleNamespace(gr_name=groups[of]))

    return become


@pytest.mark.parametrize(
    ("user", "owner", "group", "modes", "is_refused"),
    [
        pytest.param(1000, 1000, STAFF, [0o620, 0o602, 0o666, 0o664], True, id="a group of many"),
        pytest.param(1000, 1000, STAFF, [0o640, 0o600], False, id="a group that only reads"),
        pytest.param(1000, 1000, 1000, [0o664, 0o620], False, id="the user's own group"),
        pytest.param(1000, 1000, 1000, [0o666, 0o602], True, id="all"),
        pytest.param(1000, 1000, 1001, [0o664], True, id="another user's group"),
        pytest.param(1000, 1000, 4000, [0o664], True, id="a group without a name"),
        pytest.param(3000, 3000, 1000, [0o664], True, id="a user without a name"),
        pytest.param(3000, 3000, 1000, [0o644], False, id="a user without a name, alone"),
        pytest.param(1000, 1001, 1000, [0o644, 0o600], True, id="another owner"),
        pytest.param(0, 1000, 1000, [0o644, 0o600], True, id="another owner, of root"),
        pytest.param(1000, 0, 0, [0o644, 0o600], False, id="root's"),
        pytest.param(1000, 0, 0, [0o664], True, id="root's, and its group's"),
    ],
)
def test_a_profile_that_others_may_write_is_refused(
    become: Callable[..., None],
    profile: Path,
    user: int,
    owner: int,
    group: int,
    modes: list[int],
    is_refused: bool,
) -> None:
    become(user, owner, group)
    for mode in modes:
        profile.chmod(mode)
        if not is_refused:
            assert _profile.load().texts
            continue
        with pytest.raises(ConfigurationError, match="others can write") as caught:
            _profile.load()
        assert f"chmod go-w {profile}" in caught.value.hint


@pytest.mark.parametrize(
    "name",
    [
        "token-file",
        "password-env",
        "token-refresh-enabled",
        "uri",
        "oauth2-server-uri",
        "encryption.key-id",
        "s3.access-key-id",
        "spark.hadoop.parquet.encryption.footer.key",
        "hadoop.fs.azure.account.keyprovider.acme.dfs.core.windows.net",
        "hadoop.fs.azure.sas.token.provider.type",
    ],
)
def test_what_is_no_secret(name: str) -> None:
    assert not settings.is_secret(name)


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        ("catalogs: [", "is not YAML in line", "docs/cli.md"),
        ("- a", "has no sections", "docs/cli.md"),
        ("catalog: {}", "an unknown section 'catalog'", "catalogs, spark, packages"),
        ("catalogs: {lake: x}", "section catalogs", "docs/cli.md"),
        ("catalogs: {lake: {uri: '${NO_SUCH}'}}", "NO_SUCH, which is not set", "export NO_SUCH"),
        ("catalogs: {lake: {kms: {address: x}}}", "has no type", "one of aws"),
        ("catalogs: {lake: {kms: {type: valt}}}", "has the type 'valt'", "vault"),
        ("catalogs: {lake: {kms: {type: vault}}}", "has no address", "Vault's URL"),
        ("catalogs: {lake: {kms: {type: vault, address: x, toke: y}}}", "'toke'", "token-env"),
        ("catalogs: {lake: {kms: {type: aws, encryption-context: y}}}", "'encryption-context'", ""),
        ("catalogs: {lake: {kms: {type: azure, vault-url: x, store-key-version: perhaps}}}", "not a valid boolean", ""),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_a_profile_that_is_wrong_is_refused(home: Path, text: str, says: str, hint: str) -> None:
    file = home / "iceberg-crypto.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        _profile.load().catalog("lake")
    assert says in caught.value.message and str(file) in caught.value.message
    assert hint in caught.value.hint


def test_where_the_profile_is(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _profile.load() == _profile.Profile()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        _profile.load(home / "none.yaml")
    other = home / "other.yaml"
    other.write_text("catalogs: {a: {type: hive}}")
    assert _profile.load(other).texts == {"a": {"type": "hive"}}
    monkeypatch.setenv("ICEBERG_CRYPTO_CONFIG", str(other))
    assert _profile.load().file == other
    plain = Path.home() / ".config" / "iceberg-crypto.yaml"
    assert _profile.default_file({}) == plain
    assert _profile.default_file({"XDG_CONFIG_HOME": "not/absolute"}) == plain
    assert _profile.default_file({"XDG_CONFIG_HOME": "/x"}) == Path("/x/iceberg-crypto.yaml")


def test_lists_and_maps_of_a_profile(home: Path) -> None:
    file = home / "iceberg-crypto.yaml"
    file.write_text(
        "catalogs:\n  lake:\n    encryption.allowed-key-ids: [a, b]\n"
        "    kms: {type: aws, region: eu, encryption-context: {team: hr}}\n"
    )
    found = of_lake(options())
    assert found["encryption.allowed-key-ids"] == "a,b"
    assert found["encryption.kms.aws.encryption-context.team"] == "hr"


class Started:
    """A session that has started."""

    def __init__(self) -> None:
        self.set_later: dict[str, str] = {}

    @property
    def conf(self) -> "Started":
        return self

    def set(self, key: str, value: str) -> None:
        self.set_later[key] = value


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[Result, Started]]:
    """Run verify with a Spark that starts at once and logs a line, or fails to."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)

    def invoke(*arguments: str, start: Any = None, answer: Any = None) -> tuple[Result, Started]:
        started = Started()

        def get_or_create(builder: Any) -> Any:
            os.write(2, b"12:00:00 WARN a line of Spark\n")
            started.set_later["options"] = dict(builder._options)  # type: ignore[assignment]
            if start is not None:
                raise start
            return started

        def verified(*_: Any, **__: Any) -> Any:
            time.sleep(0.3)
            if isinstance(answer, Exception):
                raise answer
            return answer or VerifyReport.of(verify_json())

        monkeypatch.setattr(SparkSession.Builder, "getOrCreate", get_or_create)
        monkeypatch.setattr(_jvm, "shut_down", lambda _: None)
        monkeypatch.setattr(_verify, "_one", verified)
        return CliRunner().invoke(
            cli.main, ["verify", *arguments, "--catalog-conf", "type=hive"]
        ), started

    return invoke


def logs(folder: Path) -> list[Path]:
    return sorted(folder.glob("iceberg-crypto-*.log"))


def test_a_command_with_a_profile_and_a_kms(
    run: Callable[..., tuple[Result, Started]], profile: Path
) -> None:
    words = shlex.split("lake.db.t --kms keystore --path /k.p12 --password-env P --config")
    result, started = run(*words, str(profile))
    assert result.exit_code == 0, result.output
    given: Any = started.set_later.pop("options")
    assert of_lake(given)["encryption.kms.keystore.path"] == "/k.p12"
    assert "encryption.kms.vault.address" not in of_lake(given)
    assert started.set_later["spark.sql.catalog.lake.token"] == "s3cret"
    assert "lake.token" not in str(given)


def test_secrets_among_sparks_settings_are_set_in_java(
    run: Callable[..., tuple[Result, Started]], profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PySpark starts the JVM with what it then has on its command line."""
    line: dict[str, str] = {}
    monkeypatch.setattr(
        SparkContext, "_ensure_initialized", lambda conf: line.update(conf.getAll())
    )
    key = "spark.hadoop.fs.s3a.secret.key"
    profile.write_text(FILE.replace("spark:\n", f"spark:\n  {key}: ${{REST_TOKEN}}\n"))
    result, started = run("lake.db.t")
    assert result.exit_code == 0, result.output
    assert (line["spark.driver.memory"], "s3cret" in str(line)) == ("2g", False)
    given: Any = started.set_later.pop("options")
    assert (given[key], key in started.set_later) == ("s3cret", False)
    assert started.set_later["spark.sql.catalog.lake.token"] == "s3cret"


def test_the_log_goes_where_all_is_well(
    run: Callable[..., tuple[Result, Started]], tmp_path: Path
) -> None:
    result, _ = run("lake.db.t")
    assert (result.exit_code, result.stderr, logs(tmp_path)) == (0, "", [])


@pytest.mark.parametrize("how", ["start", "answer"])
def test_the_log_is_kept_where_it_failed(
    run: Callable[..., tuple[Result, Started]], tmp_path: Path, how: str
) -> None:
    result, _ = run("lake.db.t", **{how: OSError("no disk")})
    (log,) = logs(tmp_path)
    assert result.exit_code == 2
    assert result.stderr.endswith(f"log: {log}\n")
    assert log.read_text() == "12:00:00 WARN a line of Spark\n"
    assert log.stat().st_mode & 0o077 == 0
    assert ("a line of Spark" in result.stderr) == (how == "start")


def test_verbose_shows_the_log(
    run: Callable[..., tuple[Result, Started]], capfd: pytest.CaptureFixture[str]
) -> None:
    result, started = run("lake.db.t", "--verbose")
    assert result.exit_code == 0
    assert "WARN a line of Spark" in capfd.readouterr().err
    assert "-Diceberg.crypto.log=info" in str(started.set_later["options"])

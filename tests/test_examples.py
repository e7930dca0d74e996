"""Each example, run for real as its reader would run it. Only the jars come from here instead of Maven."""

import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import programs
from harness.classes import SPARK_CATALOG
from harness.files import files_below, magic
from harness.jars import ROOT, SPARK_JARS, build_jars, our_jar
from servers.process import Server
from servers.rest import start_rest_server

from pyspark_iceberg_crypto import Keystore

pytestmark = pytest.mark.slow

EXAMPLES = ROOT / "examples"
EXTENSION = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


def jars() -> list[Path]:
    return [our_jar(), *build_jars("test-jars", "iceberg-spark-runtime-*.jar")]


def spark_arguments() -> list[str]:
    conf = {
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    settings = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    return ["--master", "local[2]", "--jars", ",".join(map(str, jars())), *settings]


def run(command: list[str], cwd: Path, expect: int = 0) -> str:
    environment = {
        "KEYSTORE_PASSWORD": "only-for-tests",
        "PYSPARK_SUBMIT_ARGS": shlex.join([*spark_arguments(), "pyspark-shell"]),
        "TMPDIR": str(cwd),
    }
    return programs.run(command, cwd, environment, expect=expect)


def python(example: str, *arguments: str, cwd: Path, expect: int = 0) -> str:
    return run([sys.executable, str(EXAMPLES / example), *arguments], cwd, expect)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a keystore, where several examples work on one Hadoop catalog."""
    folder = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEYSTORE_PASSWORD", "only-for-tests")
        Keystore.create(folder / "keys.p12", keys=["sales"], password_env="KEYSTORE_PASSWORD")
    return folder


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[Server]:
    server = start_rest_server(tmp_path / "rest.db", tmp_path / "warehouse", tmp_path / "rest.log")
    yield server
    server.stop()


def properties(place: Path, **more: str) -> dict[str, str]:
    return {
        **more,
        "encryption.kms-type": "keystore",
        "encryption.kms.keystore.path": str(place / "keys.p12"),
        "encryption.kms.keystore.password-env": "KEYSTORE_PASSWORD",
    }


def as_arguments(settings: dict[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in settings.items()]


def magics(folder: Path) -> set[bytes]:
    return {magic(path) for path in files_below(folder)}


@pytest.mark.nightly
def test_quickstart(tmp_path: Path) -> None:
    said = python("quickstart.py", cwd=tmp_path)
    assert "of lake.shop.orders are encrypted" in said
    assert "PARE" in said
    assert "Ada" in said
    assert "Bo" not in said
    assert not list(tmp_path.glob("iceberg-crypto-quickstart-*"))


@pytest.mark.nightly
def test_rest_catalog_and_verification_of_all_its_tables(tmp_path: Path, rest: Server) -> None:
    said = python("rest_catalog.py", rest.uri, str(tmp_path / "keys.p12"), cwd=tmp_path)
    assert "of lake.example.orders are encrypted" in said
    assert "KmsMetrics(" in said
    assert magics(tmp_path / "warehouse") == {b"PARE", b"AGS1"}
    settings = properties(tmp_path, type="rest", uri=rest.uri)
    checked = python("verify_catalog.py", *as_arguments(settings), cwd=tmp_path)
    assert "of the one table of lake are encrypted" in checked
    assert "Verification of lake" in (tmp_path / "report.html").read_text()


@pytest.fixture(scope="module")
def java(place: Path) -> str:
    """What the Java example prints."""
    class_path = os.pathsep.join([*map(str, jars()), f"{SPARK_JARS}/*"])
    program = str(EXAMPLES / "engine_neutral" / "EncryptedAppend.java")
    return run(["java", "-cp", class_path, program, "warehouse", "keys.p12"], place)


@pytest.fixture(scope="module")
def sql(place: Path) -> str:
    """What the SQL example prints."""
    settings = {
        "spark.sql.extensions": EXTENSION,
        "spark.sql.catalog.lake": SPARK_CATALOG,
    }
    for key, value in properties(place, type="hadoop", warehouse="warehouse").items():
        settings[f"spark.sql.catalog.lake.{key}"] = value
    conf = [word for setting in as_arguments(settings) for word in ("--conf", setting)]
    spark_sql = str(SPARK_JARS.parent / "bin" / "spark-sql")
    script = str(EXAMPLES / "spark_sql.sql")
    return run([spark_sql, *spark_arguments(), *conf, "-S", "-f", script], place)


READER_OF_README = r"""
import os, re, sys
from pathlib import Path

def follow(document, uri, before, names):
    # Does what a document says: its Python and its SQL, in order; some statements need others before them.
    for language, code in re.findall(r"```(python|sql)\n(.*?)```", Path(document).read_text(), re.DOTALL):
        code = code.replace("http://localhost:8181", uri)
        if language == "python":
            exec(code, names)
            continue
        for statement in filter(None, map(str.strip, code.split(";"))):
            for needed in before.pop(statement.split("(")[0].strip(), []):
                names["spark"].sql(needed)
            names["spark"].sql(statement)
    assert not before, before
    return names

root, uri = Path(sys.argv[1]), sys.argv[2]
for _ in range(2):
    follow(root / "README.md", uri, {}, {})
assert all(name.startswith("tmp") for name in os.listdir()), os.listdir()  # in TMPDIR
print("followed README")
"""

READER_OF_GUIDE = (
    READER_OF_README
    + r"""
os.mkdir("guide")
os.chdir("guide")
old = "CREATE TABLE lake.shop.visits (id INT) USING iceberg"
call = "CALL lake.system.encrypt_table"
statements = {call: [old, "INSERT INTO lake.shop.visits VALUES (1)"]}
names = follow(root / "docs" / "guide.md", uri, statements, {})
spark = names["spark"]
# README's sessions were stopped, and this one has nothing of theirs.
assert spark.conf.get("spark.sql.catalog.lake.warehouse", "none") == "none"
for table in ("lake.shop.orders", "lake.shop.visits"):
    assert [row.id for row in spark.table(table).collect()] == [1]
assert names["verify_table"](spark, "lake.shop.visits").ok
assert spark.sql("SHOW TABLES IN lake.shop").count() == 2
for page in ("metrics.md", "notebooks.md", "audit.md"):
    follow(root / "docs" / page, uri, {}, names)
assert names["found"].ok and len(names["found"].reports) == 3
assert "Verification of lake" in Path("report.html").read_text()

# The catalog is lost: its tables are gone, and their files are there.
lost = "for table, metadata in json.loads"
recovery = Path("recovery.md")
text = (root / "docs" / "recovery.md").read_text()
assert lost in text
drop = "for table in current:\n    spark.sql(f'DROP TABLE {table}')\n"
recovery.write_text(text.replace(lost, drop + lost))
follow(recovery, uri, {}, names)
assert {one.table for one in names["restored"].reports} == set(names["current"])
assert [row.id for row in spark.table("lake.shop.orders").collect()] == [1]
spark.stop()
print("followed all")
"""
)


READER_OF_PAGES = r"""
import re, shutil, sys
from pathlib import Path
from pyspark.sql import SparkSession
from pyspark_iceberg_crypto import Keystore, configure_spark

# What a block names that is not here: storage, servers, another KMS, what the reader has to fill in.
ELSEWHERE = (
    *("s3://", "sc://", "example.com", "...", "<"),
    *("lake.web.", "lake_former", "the-former-key", "versionAsOf", "report.json"),
)
ENCRYPT = "CALL lake.system.encrypt_table(table => 'shop.orders', key_id => 'sales')"
# What some blocks need before them: they show other ways to what the block before them did.
BEFORE = {
    "from pyspark_iceberg_crypto import encrypt_table": "plaintext",
    "encrypt_table(spark": "plaintext",
    "CALL lake.system.purge_plaintext": "encrypted",
    "from pyspark_iceberg_crypto import purge_plaintext": "encrypted",
    "from pyspark_iceberg_crypto import decrypt_table": "purged",
}


def table(name, *properties):
    spark.sql(f"DROP TABLE IF EXISTS lake.{name}")
    shutil.rmtree("warehouse/" + name.replace(".", "/"), ignore_errors=True)
    listed = ", ".join(("'format-version'='3'", *properties))
    spark.sql(f"CREATE TABLE lake.{name} (id INT) USING iceberg TBLPROPERTIES ({listed})")
    spark.sql(f"INSERT INTO lake.{name} VALUES (1), (2)")


def prepare(wanted):
    if wanted:
        table("shop.orders")
    if wanted in ("encrypted", "purged"):
        spark.sql(ENCRYPT)
    if wanted == "purged":
        spark.sql("CALL lake.system.purge_plaintext(table => 'shop.orders')")


root = Path(sys.argv[1])
keys = Keystore.create("keys.p12", keys=["sales", "sales-2", "sales-3"], password_env="KEYSTORE_PASSWORD")
builder = SparkSession.builder
spark = configure_spark(builder, "lake", type="rest", uri=sys.argv[2], kms=keys).getOrCreate()
spark.sql("CREATE NAMESPACE lake.db")
spark.sql("CREATE NAMESPACE lake.shop")
left = 0
for page in sys.argv[3:]:
    table("db.t", "'encryption.key-id'='sales'")
    table("shop.orders", *([] if page == "encrypting-tables" else ["'encryption.key-id'='sales'"]))
    names = {"spark": spark, "keys": keys}
    text = (root / "docs" / f"{page}.md").read_text()
    for language, code in re.findall(r"```(python|sql)\n(.*?)```", text, re.DOTALL):
        if any(one in re.sub("#.*", "", code) for one in ELSEWHERE):
            left += 1
            exec("".join(re.findall(r"^from pyspark_iceberg_crypto import [^(\n]+$", code, re.M)), names)
            continue
        prepare(next((wanted for start, wanted in BEFORE.items() if code.startswith(start)), None))
        print("==", page, code, flush=True)
        try:
            if language == "python":
                exec(code, names)
            else:
                for statement in filter(None, map(str.strip, code.split(";"))):
                    spark.sql(statement).collect()
        except Exception as error:
            sys.exit(str(error)[:2000])
spark.stop()
print("left out:", left)
"""


@pytest.mark.nightly
def test_pages_on_tables(tmp_path: Path, rest: Server) -> None:
    """Their Python and SQL, in order, but for the blocks that need what is not here."""
    pages = (
        "verification",
        "keys",
        "rotation",
        "encrypting-tables",
        "repair",
        "doctor",
        "procedures",
        "compromise",
    )
    said = run([sys.executable, "-c", READER_OF_PAGES, str(ROOT), rest.uri, *pages], tmp_path)
    assert len(re.findall(r"^== ", said, re.MULTILINE)) == 33
    assert "left out: 14\n" in said


def test_readme(tmp_path: Path) -> None:
    """Its quick start, as a reader would type it, pasted twice."""
    said = run([sys.executable, "-c", READER_OF_README, str(ROOT), "no server"], tmp_path)
    assert said.count("of lake.db.t are encrypted") == 2
    assert said.count("b'PARE'") == 2
    assert "followed README" in said


@pytest.mark.nightly
def test_guide(tmp_path: Path, rest: Server) -> None:
    """After README in one process: the guide, and the pages on metrics, notebooks, audits and recovery."""
    empty = tmp_path / "empty"
    empty.mkdir()
    said = run([sys.executable, "-c", READER_OF_GUIDE, str(ROOT), rest.uri], empty)
    for text in ("of lake.shop.orders are encrypted", "AES_GCM", "KmsMetrics(", "followed all"):
        assert text in said


@pytest.mark.nightly
def test_what_readme_says_of_stock_iceberg(tmp_path: Path) -> None:
    """Its command, in an empty folder; by day interop/test_stock.py has stock Iceberg write plaintext."""
    readme = (ROOT / "README.md").read_text()
    (command,) = re.findall(r"```sh\n(spark-sql .*?)```", readme, re.DOTALL)
    iceberg, *_ = build_jars("test-jars", "iceberg-spark-runtime-*.jar")
    command = re.sub(r"--packages \S+", f"--jars {shlex.quote(str(iceberg))}", command)
    command = command.replace("/tmp/stock", "stock")
    path = f"{SPARK_JARS.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    for times in (1, 2):
        said = run(["env", f"PATH={path}", "bash", "-ec", command], tmp_path)
        assert "PAR1" * times in said
        assert "PARE" not in said


@pytest.mark.nightly
def test_engine_neutral_java(place: Path, java: str) -> None:
    assert [line for line in java.splitlines() if line.startswith("read ")] == [
        f"read Record({i}, /page/{i})" for i in (1, 2, 3)
    ]
    assert magics(place / "warehouse" / "shop" / "visits") == {b"PARE", b"AGS1"}


@pytest.mark.nightly
def test_spark_sql(place: Path, sql: str) -> None:
    assert "orders: 4, total: 24.75" in sql.splitlines()
    assert "customers: 4" in sql.splitlines()
    for table in ("orders", "customers"):
        assert magics(place / "warehouse" / "shop" / table) == {b"PARE", b"AGS1"}


@pytest.mark.usefixtures("java", "sql")
@pytest.mark.nightly
def test_verify_catalog_finds_the_table_without_a_key_id(place: Path) -> None:
    """On the tables that the two examples above make, one of them without a key id."""
    settings = properties(place, type="hadoop", warehouse="warehouse")
    said = python("verify_catalog.py", *as_arguments(settings), cwd=place, expect=1)
    assert len(re.findall(r"^ ✓ .* encrypted$", said, re.MULTILINE)) == 3, said
    assert "Of 4 tables of lake, 1 has problems and 3 are encrypted" in " ".join(said.split())


READER_OF_ONE_PAGE = r"""
import re, sys
from pathlib import Path
names = {}
for language, code in re.findall(r"```(python|sql)\n(.*?)```", Path(sys.argv[1]).read_text(), re.DOTALL):
    exec(code, names) if language == "python" else names["spark"].sql(code)
names["spark"].stop()
"""


@pytest.mark.nightly
@pytest.mark.parametrize("page", ["parquet-columns", "orc-columns"])
def test_pages_on_columns_print_what_they_say(tmp_path: Path, page: str) -> None:
    document = ROOT / "docs" / f"{page}.md"
    said = run([sys.executable, "-c", READER_OF_ONE_PAGE, str(document)], tmp_path)
    (printed,) = re.findall(r"This prints\n\n```\n(.*?)```", document.read_text(), re.DOTALL)
    assert printed in said

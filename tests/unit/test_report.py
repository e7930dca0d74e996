"""What verify_table, inspect_file and kms_metrics make of the JVM's answers, and how it looks."""

import json
from html.parser import HTMLParser
from typing import Any

import pytest
from doubles.in_process import VerifyResult, broken_json, evidence_json, verify_json

from pyspark_iceberg_crypto import (
    ConfigurationError,
    FileCount,
    VerifyReport,
    inspect_file,
    kms_metrics,
    verify_table,
)
from pyspark_iceberg_crypto.evidence._evidence import VerifyTablesReport
from pyspark_iceberg_crypto.verbs import kept_reports

LONG = {
    **{"kind": "data", "path": "s3://bucket" + 3 * "/a-folder" + "/data/00000-0-" + 3 * "uuid" * 9},
    **{"problem": 20 * "a word ", "hint": 60 * "a word ", "unchecked": False, "code": "plaintext"},
}


def test_verify_table_reads_the_answer(jvm: dict[str, Any]) -> None:
    result = jvm["verifyTable"] = VerifyResult(verify_json())
    with verify_table("spark", "lake.db.t", all_snapshots=True) as report:  # type: ignore[arg-type]
        assert report.ok
        assert report.counts[0] == FileCount("data", "PARE", True, 3, 123_456)
        assert report.files == ("spark", "a Java Dataset")
    report.close()
    ((method, table, options, progress),) = jvm["calls"]
    assert (method, table, progress) == ("verifyTable", "lake.db.t", None)
    assert json.loads(options) == {
        "structure": False,
        "deep": False,
        "all_snapshots": True,
        "sample": 1.0,
        "seed": 0,
        "strays": False,
        "resume": None,
        "since": None,
        "since_key_id": None,
        "recheck": 0.01,
    }
    assert result.closed == 1
    with pytest.raises(ConfigurationError, match="no list of files"):
        _ = report.files


def test_a_report_on_a_large_catalog_can_be_read_again() -> None:
    """20,000 tables, with the ten problems and snapshots that are listed of each, and 50,000 problems."""
    few = {"problems": [LONG] * 10, "snapshot_ids": [2**62] * 10}
    report = VerifyReport.of(evidence_json(**few))
    each = len(VerifyTablesReport("lake", [report], [], []).to_json())
    assert 20_000 * each + 50_000 * len(json.dumps(LONG, indent=2)) < kept_reports.MOST_BYTES


@pytest.mark.parametrize("name", ["", "  ", None])
def test_a_table_without_a_name(name: Any) -> None:
    with pytest.raises(ConfigurationError, match="table's name"):
        verify_table(None, name)  # type: ignore[arg-type]


def test_a_good_report_as_text() -> None:
    shown = str(VerifyReport.of(verify_json()))
    said = "✓ All 4 files in the current snapshot of lake.db.t are encrypted (master key 'k1'); other snapshots"
    assert said in shown
    assert "current snapshot, depth magic, 131.3 KB, 0.4 s" in shown
    assert "manifest" in shown and "AGS1" in shown and "123,456" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("of", "said"),
    [
        ({"branches": ["b"]}, "the current snapshot and 1 branch"),
        ({"branches": ["b", "c"], "tags": ["d"]}, "the current snapshot, 2 branches and 1 tag"),
        ({"tags": ["d", "e"]}, "the current snapshot and 2 tags"),
        ({"all_snapshots": True, "branches": ["b"]}, "all snapshots"),
    ],
)
def test_the_verdict_names_its_reach(of: dict[str, Any], said: str) -> None:
    report = VerifyReport.of(verify_json(**of))
    shown = " ".join(str(report).split())
    verdict = f"✓ All 4 files in {said} of lake.db.t are encrypted (master key 'k1')"
    rest = "" if report.all_snapshots else "; other snapshots were not checked"
    assert f"{verdict}{rest} {said}, depth magic" in shown
    assert f"{verdict}{rest}</strong>".replace("'", "&#39;") in report.to_html()


@pytest.mark.parametrize(
    ("snapshots", "said"),
    [
        (1, ""),
        (2, "; 1 other snapshot was not checked"),
        (4, "; 3 other snapshots were not checked"),
    ],
)
def test_the_verdict_counts_snapshots_that_were_not_checked(snapshots: int, said: str) -> None:
    history = [
        {"snapshot_id": i, "timestamp": f"2026-01-0{i + 1}T00:00:00Z"} for i in range(snapshots)
    ]
    shown = str(VerifyReport.of(verify_json(snapshot_history=history)))
    assert f"are encrypted (master key 'k1'){said} the current" in " ".join(shown.split())


def test_plaintext_that_a_table_had_before() -> None:
    """The files that it has now are encrypted, which is not all that there is of its rows."""
    kept = "s3://b/w/t/metadata/<plain>.metadata.json"
    report = VerifyReport.of(verify_json(plaintext_metadata=kept))
    assert report.ok
    loud = (
        "PLAINTEXT of this table from before encrypt_table is still in the storage: all files that"
    )
    shown = " ".join(str(report).split())
    assert "not checked. PLAINTEXT from before encrypt_table is still in the storage" in shown
    assert f"{loud} {kept} reaches. purge_plaintext lists them" in shown
    for page in (report.to_html(), report._repr_html_()):
        assert f"{loud} s3://b/w/t/metadata/&lt;plain&gt;.metadata.json reaches." in page
    assert "PLAINTEXT" not in str(VerifyReport.of(verify_json()))
    bad = VerifyReport.of({**broken_json(), "plaintext_metadata": kept})
    assert loud in " ".join(str(bad).split())


def test_a_plaintext_table_has_no_tag_that_was_checked() -> None:
    counts = [{"kind": "data", "magic": "PAR1", "encrypted": False, "files": 1, "bytes": 9}]
    for depth in ("structure", "deep"):
        changes = {"ok": False, "key_id": None, "depth": depth, "counts": counts}
        changes |= {"files": 1, "bytes": 9}
        page = VerifyReport.of(verify_json(**changes)).to_html()
        assert "authentication tag was checked" not in page and "its key" not in page
        assert (
            "None of the files that were checked is encrypted, so there was no key and no" in page
        )
    assert (
        "every authentication tag was checked"
        in VerifyReport.of(verify_json(depth="deep")).to_html()
    )


def test_a_report_says_whether_the_metadata_is_authenticated() -> None:
    report = VerifyReport.of(verify_json())
    assert "its metadata is authenticated: each load checks its MAC" in str(report)
    why = "the catalog has <off>"
    report = VerifyReport.of(verify_json(metadata_authenticated=False, metadata_authentication=why))
    assert report.ok, "it is about the files"
    assert f"its metadata is not authenticated: {why}" in str(report)
    assert "its metadata is not authenticated: the catalog has &lt;off&gt;" in report._repr_html_()
    assert report.to_dict()["metadata_authenticated"] is False
    assert report.to_dict()["metadata_authentication"] == why


def test_a_bad_report_as_text() -> None:
    shown = str(VerifyReport.of(broken_json()))
    assert (
        "✗ The one file in the current snapshot of lake.db.t (master key 'k1') is PLAINTEXT"
        in shown
    )
    assert "PLAINTEXT" in shown
    assert "<script>alert(1)</script>[red]x.parquet" in shown, "brackets are no markup"
    assert "hint: rewrite it" in shown


def test_a_table_without_a_key() -> None:
    found = broken_json()
    table = {
        "kind": "table",
        "path": "lake.db.t",
        "problem": "it has no key id",
        "hint": "",
        "code": "plaintext",
    }
    report = VerifyReport.of({**found, "key_id": None, "problems": [table, *found["problems"]]})
    said = "✗ lake.db.t is not encrypted: the one file in the current snapshot is PLAINTEXT; other snapshots"
    assert said in str(report)


def test_many_problems_are_cut_short() -> None:
    problem = {"kind": "data", "path": "p", "problem": "is plaintext", "hint": None}
    report = VerifyReport.of(
        verify_json(ok=False, problem_count=5000, problems=[dict(problem) for _ in range(1000)])
    )
    assert "and 4,980 more" in str(report)
    assert report.problems[0].hint == ""


def test_a_report_in_a_notebook_is_the_same_as_in_a_terminal() -> None:
    """A problem without a hint shows none, and what is left out is counted."""
    problem = {"kind": "data", "path": "p", "problem": "is plaintext", "hint": None}
    hinted = {**problem, "hint": "rewrite it"}
    report = VerifyReport.of(
        verify_json(ok=False, problem_count=5000, problems=[hinted, *[problem] * 999])
    )
    shown = report._repr_html_()
    assert shown.count("<li class=") == shown.count("is plaintext") == 20
    assert shown.count("Hint: ") == shown.count("Hint: rewrite it") == 1
    assert "<p>and 4,980 more; report.files has each file</p>" in shown
    few = VerifyReport.of(verify_json(ok=False, problem_count=1, problems=[hinted]))
    assert "more;" not in few._repr_html_()
    tags = Tags()
    tags.feed(shown)
    tags.close()


class Tags(HTMLParser):
    """Fails on a tag that is not closed where it should be."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, _: object) -> None:
        if tag not in ("br", "meta", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: object) -> None:
        """SVG's are closed at once."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def close(self) -> None:
        super().close()
        assert self.open == []


def test_to_dict_is_ready_for_json() -> None:
    found = json.loads(json.dumps(VerifyReport.of(broken_json()).to_dict()))
    assert found["problems"][0]["problem"] == "is plaintext"
    assert found["file_count"] == 1
    assert not [key for key in found if key.startswith("_")]


def test_inspect_file_keeps_what_is_known(jvm: dict[str, Any]) -> None:
    jvm["inspect_file"] = {
        "path": "f",
        "length": 1_048_620,
        "magic": "AGS1",
        "format": "AES GCM stream",
        "encrypted": True,
        "block_size": 1_048_576,
        "block_count": 1,
        "plaintext_length": 1_048_584,
        "of_a_later_version": 1,
    }
    found = inspect_file("spark", "f")  # type: ignore[arg-type]
    assert (found.block_count, found.algorithm) == (1, None)
    assert "algorithm" not in found.to_dict()
    assert "block size        1,048,576" in str(found)
    assert "✓ encrypted" in str(found)


def test_kms_metrics(jvm: dict[str, Any]) -> None:
    names = (
        *("wrap_calls", "unwrap_calls", "hits", "misses"),
        *("errors", "retries", "cached_keys", "keys_left_alone"),
    )
    answer = {
        "kms": "keystore",
        "circuit": "closed",
        "wrap_ms": 1.5,
        "unwrap_ms": 0.0,
        **dict.fromkeys(names, 2),
    }
    jvm["kms_metrics"] = {**answer, "of_a_later_version": 1}
    found = kms_metrics("spark", "lake")  # type: ignore[arg-type]
    assert (found.kms, found.hits, found.wrap_ms) == ("keystore", 2, 1.5)
    assert jvm["calls"] == [("kms_metrics", "lake")]

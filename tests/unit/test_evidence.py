"""The report as evidence: its JSON schema, exit codes, errors, page, and how it is signed and checked."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from doubles.in_process import broken_json, evidence_json, verify_json
from jsonschema import Draft202012Validator, FormatChecker
from rich.console import Console

from pyspark_iceberg_crypto import (
    BadWrappedKeyError,
    ConfigurationError,
    KmsUnavailableError,
    TamperedError,
    VerificationFailedError,
    VerificationIncompleteError,
    VerifyReport,
    VerifyTablesReport,
    check_report,
    report_schema,
)
from pyspark_iceberg_crypto.evidence import _charts, _html
from pyspark_iceberg_crypto.reports import _scope, _words
from pyspark_iceberg_crypto.reports._data import FileCount, Problem, SnapshotTotal, TableReport
from pyspark_iceberg_crypto.reports._text import visible
from pyspark_iceberg_crypto.reports._words import CheckedSignature

SCHEMA = report_schema()
VALIDATOR = Draft202012Validator(SCHEMA, format_checker=FormatChecker())
NOT_CHECKED = {"table": "lake.db.<i>secret", "problem": "no permission", "hint": "ask"}
LEFT_OUT = {"lake.db.<i>plain": False, "lake.db.kept": True, "lake.db.files": None}
SIGNATURE = {
    "algorithm": "HMAC-SHA-256",
    "key_id": "k<1>",
    "wrapped_key": "AAAA",
    "signed_at": "2026-02-01T00:00:02Z",
    "mac": "0b" * 32,
}


def unchecked_json() -> dict[str, Any]:
    problem = {"kind": "data", "path": "p", "problem": "403", "hint": None, "unchecked": True}
    found = verify_json()
    found["counts"][0] |= {"unchecked_files": 1, "unchecked_bytes": 456}
    problems = [{**problem, "code": "unreadable"}]
    return {**found, "ok": False, "unchecked_count": 1, "problems": problems}


def several(
    *found: dict[str, Any], not_checked: Any = (), left_out: dict[str, bool | None] | None = None
) -> VerifyTablesReport:
    reports = [VerifyReport.of(one) for one in found]
    left = [{"table": table, "encrypted": known} for table, known in (left_out or {}).items()]
    return VerifyTablesReport("lake.db", reports, list(not_checked), [], left)


GOOD, BAD, OPEN = verify_json(), evidence_json(), unchecked_json()
GOOD_SNAPSHOT = {"snapshot_id": 1, "timestamp": "2026-01-01T00:00:00Z"}


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    "report",
    [
        VerifyReport.of(GOOD),
        VerifyReport.of(BAD),
        VerifyReport.of({**BAD, "signature": SIGNATURE}),
        several(GOOD, BAD, not_checked=[NOT_CHECKED]),
        several(),
        several(GOOD, left_out=LEFT_OUT),
    ],
)
def test_reports_are_as_the_schema_says(report: VerifyReport | VerifyTablesReport) -> None:
    VALIDATOR.validate(json.loads(report.to_json()))


def properties(name: str) -> set[str]:
    return set(SCHEMA["$defs"][name]["properties"])


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (TableReport, "report"),
        (FileCount, "fileCount"),
        (Problem, "problem"),
        (SnapshotTotal, "snapshot"),
    ],
)
def test_the_schema_leaves_nothing_out(kind: Any, name: str) -> None:
    assert set(kind.__dataclass_fields__) == properties(name)


def test_the_schema_leaves_nothing_out_of_several() -> None:
    assert set(several().to_dict()) == properties("reports")


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 2},
        {"ok": "true"},
        {"depth": "quick"},
        {"sample": 0},
        {"problem_count": -1},
        {"metadata_sha256": "x"},
        {"started_at": 5},
        {"problems": [{"kind": "data"}]},
        {"signature": {**SIGNATURE, "algorithm": "none"}},
        {"signature": {**SIGNATURE, "kind": "good"}},
    ],
    ids=str,
)
def test_the_schema_refuses(change: dict[str, Any]) -> None:
    found = json.loads(VerifyReport.of(BAD).to_json())
    assert not VALIDATOR.is_valid({**found, **change})
    del found["ok"]
    assert not VALIDATOR.is_valid(found)


def test_a_report_is_read_from_its_own_json() -> None:
    for found in (GOOD, BAD):
        report = VerifyReport.of(found)
        assert VerifyReport.of(json.loads(report.to_json())) == report
    both = several(GOOD, BAD, not_checked=[NOT_CHECKED], left_out=LEFT_OUT)
    assert VerifyTablesReport.of(json.loads(both.to_json()), VerifyReport) == both


def test_what_an_older_report_lacks_has_its_default() -> None:
    report = VerifyReport.of(verify_json())
    assert (report.depth, report.sample, report.schema_version) == ("magic", 1.0, 1)
    assert report.unchecked == [] and report.snapshot_history == []


def test_what_a_later_report_has_more_is_left_out() -> None:
    found = evidence_json(of_later="x")
    for part in ("counts", "problems", "snapshot_history"):
        found[part] = [{**one, "of_later": 1} for one in found[part]]
    assert VerifyReport.of(found) == VerifyReport.of(evidence_json())


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (VerifyReport.of(GOOD), 0),
        (VerifyReport.of(BAD), 1),
        (VerifyReport.of(broken_json()), 1),
        (VerifyReport.of(OPEN), 2),
        (VerifyReport.of(verify_json(ok=False, key_id=None)), 1),
        (VerifyReport.of(verify_json(ok=True, unchecked_count=1)), 2),
        (VerifyReport.of(verify_json(ok=True, problem_count=1)), 1),
        (several(GOOD, GOOD), 0),
        (several(GOOD, left_out=LEFT_OUT), 0),
        (several(left_out=LEFT_OUT), 2),
        (several(BAD, left_out=LEFT_OUT), 1),
        (several(GOOD, OPEN), 2),
        (several(), 2),
        (several(OPEN, BAD, GOOD), 1),
        (several(GOOD, not_checked=[NOT_CHECKED]), 2),
        (several(BAD, not_checked=[NOT_CHECKED]), 1),
    ],
)
def test_exit_codes_and_errors(report: VerifyReport | VerifyTablesReport, code: int) -> None:
    assert report.exit_code == code
    assert report.ok == (code == 0)
    if code == 0:
        report.raise_for_problems()
        return
    with pytest.raises(VerificationFailedError) as caught:
        report.raise_for_problems()
    assert isinstance(caught.value, VerificationIncompleteError) == (code == 2)
    assert caught.value.report is report
    assert "lake.db" in caught.value.message


def test_the_error_tells_the_files() -> None:
    with pytest.raises(VerificationFailedError, match=r"2 problems\n  data s3://b/w/t") as caught:
        VerifyReport.of(BAD).raise_for_problems()
    assert caught.value.hint == "rewrite it"
    with pytest.raises(VerificationFailedError, match="1 file that could not be checked\n  data p"):
        VerifyReport.of(OPEN).raise_for_problems()


def test_what_could_not_be_checked_is_apart_from_problems() -> None:
    shown = str(VerifyReport.of(BAD))
    wrong, _, unchecked = shown.partition("Could not be checked, so nothing is known about them:")
    assert "✗ data" in wrong and "statistics  s3" not in wrong
    assert "? statistics  s3://b/x.stats" in unchecked and "✗" not in unchecked
    assert (
        "? Not proved: of the 4 files in the current snapshot of lake.db.t (master key 'k1'), 1 could not be checked"
        " and 3 are encrypted; other snapshots were not checked"
    ) in " ".join(str(VerifyReport.of(OPEN)).split())


def test_metadata_files_are_no_plaintext_files() -> None:
    metadata = [one for one in BAD["counts"] if one["kind"] == "metadata file"]
    counts = [*GOOD["counts"], *metadata]
    shown = str(VerifyReport.of(verify_json(counts=counts, files=6, bytes=140_346)))
    assert "never encrypted" in shown and "PLAINTEXT" not in shown
    assert "✓ All 4 files in the current snapshot of lake.db.t are encrypted" in shown


def test_a_folder_has_no_table() -> None:
    counts = [
        {"kind": "file", "magic": "PARE", "encrypted": True, "files": 2, "bytes": 10},
        {"kind": "file", "magic": "JSON", "encrypted": False, "files": 1, "bytes": 10},
    ]
    same = ("ok", "files", "bytes", "seconds", "problem_count", "problems")
    told = {**{k: verify_json()[k] for k in same}, "files": 3, "bytes": 20, "counts": counts}
    report = VerifyReport.of({**told, "folder": "s3://b/w", "unchecked_count": 0})
    VALIDATOR.validate(report.to_dict())
    both = VerifyTablesReport("s3://b/w, s3://b/w", [report, report], [])
    for shown in (both.to_html(), str(both), report.to_html()):
        assert "other snapshots" not in shown and "that the catalog did not list" not in shown
        assert "are of encrypted formats; without their keys nothing more is known" in " ".join(
            shown.split()
        )
    for page in (both.to_html(), report.to_html()):
        assert "Anything that happened after the check." in page
        assert not re.search(r"-text\">[^<]*\bencrypted</td>", page)
    assert report.ok and "✓ All 2 files in s3://b/w are of encrypted formats" in str(report)
    assert "authenticated" not in str(report) and "snapshot" not in str(report)
    assert "of an encrypted format" in str(report), "of which only the first bytes were read"
    assert "without a catalog and without table metadata" in report.to_html()
    assert VerifyReport.of(json.loads(report.to_json())) == report
    bad = VerifyReport.of({**told, "folder": "s3://b/w", "problem_count": 1})
    assert "1 problem found in 2 files in s3://b/w" in str(bad), (
        "an older report has no number of files with one"
    )


def test_a_sample_is_no_proof_of_all() -> None:
    report = VerifyReport.of(
        verify_json(sample=0.01, seed=7, left_out_files=396, left_out_bytes=10**9)
    )
    assert (
        "No problem was found in a sample of 4 files in the current snapshot of lake.db.t"
        in str(report)
    )
    assert "396 files and other snapshots were not checked" in " ".join(str(report).split())
    assert "sample 0.01, seed 7" in str(report)
    assert "are encrypted" not in str(report)
    page = report.to_html()
    assert "a random sample of 1% was checked (seed 7)" in page
    assert "396 data or delete files (1.0 GB) were not in the sample" in page


def test_several_tables_name_depth_and_reach() -> None:
    both = several(verify_json(depth="deep"), verify_json(depth="deep", branches=["b"]))
    said = (
        "All 8 files in the current snapshots, branches and tags of 2 tables of lake.db are encrypted; other "
        "snapshots were not checked"
    )
    scope = "8 files in 2 tables, depth deep, current snapshots, branches and tags"
    shown = " ".join(str(both).split())
    assert f"✓ {said} {scope}" in shown and f"✓ {said}</strong>" in both.to_html()
    whole = several(verify_json(all_snapshots=True, strays=True))
    assert "4 files in 1 table, depth magic, all snapshots, strays" in str(whole)
    assert "✓ All 4 files in all snapshots and folders of the one table of lake.db" in str(whole)
    sampled = several(verify_json(sample=0.5, seed=1), verify_json(sample=0.5, seed=1))
    assert "✓ No problem was found in a sample of 8 files" in str(sampled)
    assert "sample 0.5" in str(sampled) and "encrypted" not in str(sampled)
    one = several(
        GOOD, verify_json(sample=0.5, seed=1, left_out_files=1), not_checked=[NOT_CHECKED]
    )
    assert "1 has no problem in its sample and 1 is encrypted; 1 file and" in " ".join(
        str(one).split()
    )
    one = several(verify_json(sample=0.5, seed=1, left_out_files=1, all_snapshots=True))
    assert "; 1 file was not checked" in " ".join(str(one).split())
    empty = several(verify_json(counts=[], files=0, bytes=0))
    assert "✓ There is no file yet to encrypt in " in str(empty) and "encrypted" not in str(empty)
    left = several(GOOD, verify_json(plaintext_metadata="s3://b/plain.metadata.json"))
    shown = " ".join(str(left).split())
    assert "PLAINTEXT of 1 table from before encrypt_table is still in the storage" in shown
    assert "all files that s3://b/plain.metadata.json reaches" in shown
    assert left.ok


def test_a_report_that_rests_on_recorded_outcomes_says_so() -> None:
    report = VerifyReport.of(verify_json(resume="s3://b/<r>", resumed_files=3))
    assert ", 3 files checked before, " in str(report)
    said = "3 files that an earlier run had recorded in s3://b/&lt;r&gt; as correct were not read again"
    assert said in report.to_html()
    first = VerifyReport.of(verify_json(resume="s3://b/<r>"))
    assert "checked before" not in str(first) and "read again" not in first.to_html()


def test_a_report_that_rests_on_an_earlier_one_does_not_say_that_all_was_read() -> None:
    signed = {"key_id": "<audit>", "signed_at": "2026-11-20T12:00:00Z", "mac": "cd" * 32}
    since = {**signed, "recheck": 0.01, "rechecked_files": 1, "unsigned_files": 1}
    record = {"folder": "r", "index": "_record-1.json", "sha256": "ab" * 32}
    record |= {"oldest": "2026-11-01T00:00:00Z", "files": 3}
    of = verify_json(resume="r", resumed_files=2, since=since, record=record)
    report = VerifyReport.of(of)
    VALIDATOR.validate(json.loads(report.to_json()))
    shown = " ".join(str(report).split())
    assert (
        "✓ No problem was found in 4 files in the current snapshot of lake.db.t; 2 files were not read again: the "
        "report that master key '<audit>' signed at 2026-11-20 12:00:00 UTC vouches for them; other snapshots"
    ) in shown
    assert "encrypted (" not in shown and ", 1 of an earlier report again, " in shown
    page = report.to_html()
    assert (
        "&lt;audit&gt;" in page
        and "<audit>" not in page
        and "ab" * 32 in page
        and "cd" * 32 in page
    )
    assert (
        "1, a random share of 1%, was checked again; the oldest of the checks was made at 2026-11-01"
        in page
    )
    assert "A change of them since then would not be detected; 1 other file of that report" in page
    assert "Anyone who can write there" not in page
    assert (
        "For 1 of these files, the result was recorded in a folder before anyone signed it" in page
    )
    both = " ".join(str(several(of, GOOD)).split())
    assert "✓ No problem was found in 8 files in " in both
    assert "; 2 files of an earlier report were not read again; other snapshots" in both
    assert "1 has no problem since its earlier report" in str(
        several(of, not_checked=[NOT_CHECKED])
    )
    alone = VerifyReport.of({**of, "resumed_files": 0})
    assert "✓ All 4 files" in str(alone) and "vouches" not in str(alone)


def test_many_tables_are_a_line_each() -> None:
    shown = str(several(GOOD, BAD, not_checked=[NOT_CHECKED]))
    assert "✓   lake.db.t" in shown and "✗   lake.db.t" in shown
    assert (
        "✗ Of 3 tables of lake.db, 1 has problems, 1 could not be checked and 1 is encrypted"
        in shown
    )
    assert "no permission\nhint: ask" in shown


def test_tables_that_were_left_out_are_told_wherever_a_report_is_read() -> None:
    report = several(GOOD, GOOD, left_out=LEFT_OUT)
    shown = str(report)
    verdict = (
        "All 8 files in the current snapshots of 2 tables of lake.db that were verified are encrypted; other snapshots "
        "were not checked; 3 tables were left out and not verified"
    )
    assert f"✓ {verdict}" in " ".join(shown.split())
    for table, known in LEFT_OUT.items():
        (line,) = [line for line in shown.splitlines() if table in line]
        assert "left out, not verified" in line and ("has a master key" in line) == (known is True)
    page = report.to_html()
    assert verdict in page and "lake.db.&lt;i&gt;plain" in page and "<i>" not in page
    assert page.count("left out, not verified") == 3
    note = several(GOOD, not_checked=[NOT_CHECKED], left_out=LEFT_OUT)._repr_html_()
    assert "<p>Not checked: lake.db.&lt;i&gt;secret</p>" in note
    assert "<p>Left out: lake.db.&lt;i&gt;plain, lake.db.kept, lake.db.files</p>" in note
    one = several(GOOD, left_out={"lake.db.plain": False})
    shown = " ".join(str(one).split())
    assert "the one table of lake.db that was verified are encrypted" in shown
    assert "1 table was left out and not verified" in shown
    assert "No table of lake.db was verified" in str(several(left_out=LEFT_OUT))
    assert "3 tables were left out" in str(several(BAD, left_out=LEFT_OUT))
    assert "left out" not in str(several(GOOD)) and "left out" not in several(GOOD).to_html()


def test_names_of_strangers_do_nothing_to_the_terminal() -> None:
    assert visible("a\x1b[2J\n\u202eb\u2028\x00\ud800") == "a\\x1b[2J\\n\\u202eb\\u2028\\x00\\ud800"
    assert visible("größe 数") == "größe 数"
    shown = str(VerifyReport.of(evidence_json(table="lake.db.\x1b[31mt", key_id="k\n✓ all")))
    assert "\x1b" not in shown and "\u202e" not in shown
    assert not [line for line in shown.splitlines() if line.startswith("✓")]


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_is_not_too_narrow(width: int) -> None:
    for report in (VerifyReport.of(BAD), several(GOOD, BAD, not_checked=[NOT_CHECKED])):
        out = StringIO()
        Console(file=out, width=width, color_system="truecolor", force_terminal=True).print(report)
        lines = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue()).splitlines()
        assert max(map(len, lines)) <= width
        assert any(BAD["table_uuid"] in line for line in lines), "it is whole"


# ---- the page


def hostile() -> dict[str, Any]:
    """A report in which every text is a program for a browser."""
    attack = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>{{7*7}}"

    def attacked(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: attacked(one) for name, one in value.items()}
        if isinstance(value, list):
            return [attacked(one) for one in value]
        return f"{value}{attack}" if isinstance(value, str) else value

    kept = ("depth", "snapshot_history")
    return {k: v if k in kept else attacked(v) for k, v in evidence_json().items()}


def test_the_page_escapes_what_comes_from_a_table() -> None:
    report = VerifyReport.of({**hostile(), "signature": SIGNATURE})
    both = several(hostile(), hostile(), not_checked=[NOT_CHECKED])
    for page in (report.to_html(), report._repr_html_(), both.to_html(), both._repr_html_()):
        assert "alert(1)" in page, "the attack is there"
        assert "<script" not in page and "<img" not in page and "<i>" not in page
        assert "{{7*7}}" in page and "49" not in re.findall(r">\S*alert\(2\)\S*<", page)
        assert "\u202e" not in page and "\x1b" not in page


def test_names_of_strangers_turn_no_text_around_on_the_page() -> None:
    turned = "\u202e"
    history = [
        {"snapshot_id": day, "timestamp": f"2026-01-0{day}{turned}00:00:00+00:00", "bytes": day}
        for day in (1, 2)
    ]
    report = VerifyReport.of(verify_json(table=turned, depth=turned, snapshot_history=history))
    both = VerifyTablesReport(turned, [report, VerifyReport.of(BAD)], [])
    for page in (report.to_html(), report._repr_html_(), both.to_html()):
        assert turned not in page and "\\u202e" in page


def test_the_page_needs_nothing_else() -> None:
    page = VerifyReport.of(BAD).to_html()
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#|data:,)""", page)
    assert not re.search(r"@import|url\((?!#)", page)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'" in policy


def test_the_page_has_the_evidence() -> None:
    page = VerifyReport.of({**BAD, "signature": SIGNATURE}).to_html()
    for name in ("table_uuid", "metadata_location", "metadata_sha256", "started_at", "ended_at"):
        assert BAD[name] in page, name
    assert "iceberg 1.12.0" in page and str(2**62 + 5) in page


def test_the_page_says_whether_the_signature_was_checked() -> None:
    """In a line of its own; what was not checked, or is not signed, does not look genuine."""

    def line(report: VerifyReport | VerifyTablesReport) -> tuple[str, str]:
        (found,) = re.findall(r'<p class="signature (\w+)">(.*?)</p>', report.to_html(), re.DOTALL)
        return found[0], " ".join(re.sub("<[^>]+>", "", found[1]).split())

    for plain in (VerifyReport.of(BAD), several(GOOD, BAD)):
        signed = replace(plain, signature=SIGNATURE)
        kind, said = line(plain)
        assert (kind, said.split(".")[0]) == ("plain", "- Not signed")
        kind, said = line(signed)
        assert kind == "open" and said.startswith("? Signature not checked. The report claims")
        expected = "report check report.json --key-id EXPECTED_KEY, with the key that you expect."
        assert said.endswith(expected) and "✓" not in said
        lying = {"kind": "good", "head": "Signature genuine.", "said": "Checked."}
        assert line(replace(plain, signature={**SIGNATURE, **lying})) == (kind, said)
        genuine = signed.as_genuine(CheckedSignature("2026-02-03T09:00:00.5Z", "lake", True))
        kind, said = line(genuine)
        assert kind == "good" and said.startswith(
            "✓ Signature genuine. Signed with master key &#39;k&lt;1&gt;&#39;"
        )
        assert "Checked with the KMS of catalog lake at 2026-02-03 09:00:00 UTC." in said
        genuine.as_genuine(CheckedSignature("2026-02-03T09:00:00Z", "lake", False))
        assert "no particular master key was required" in line(genuine)[1]
        assert line(replace(genuine))[0] == "open", "a copy may be changed"
        VALIDATOR.validate(genuine.to_dict())


def sentences(page: str) -> dict[str, str]:
    scope, _, _ = page.partition("</dl>")
    return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", scope))


def test_the_scope_can_be_handed_on() -> None:
    good = {**BAD, **{name: GOOD[name] for name in ("ok", "counts", "files", "bytes")}}
    good |= {"problem_count": 0, "unchecked_count": 0, "problems": [], "kms": "Vault <1>"}
    report = VerifyReport.of(good)
    said = sentences(report.to_html())
    assert said["Table"].startswith("The Iceberg table lake.db.t (UUID 9c12d441-")
    assert said["Snapshots"].startswith("All 5 snapshots of the table, and what remains of expired")
    assert said["Files"].startswith(
        "4 files (131.3 KB): manifest lists, manifests, data and delete files"
    )
    assert said["Depth"].startswith("Every byte of every encrypted file was read")
    assert said["Master key"] == "&#39;k1&#39; in Vault &lt;1&gt;."
    assert said["Time"] == "From 2026-02-01 00:00:00 UTC to 2026-02-01 00:00:01 UTC."
    assert said["Software"] == "iceberg-crypto 0.1.0 with Iceberg 1.12.0, Spark 4.1.4 and Java 17."


def scope_of(report: VerifyReport) -> str:
    return " ".join((*sentences(report.to_html()).values(), *_scope.not_checked(report)))


def test_the_scope_says_what_was_not_checked() -> None:
    little, much = (
        verify_json(metadata_authenticated=False),
        verify_json(all_snapshots=True, strays=True, depth="deep"),
    )
    for said in (
        "The first bytes of each file were read",
        "Files that only other snapshots reach.",
        "Files in table folders that no metadata names",
        "anyone who can write to the storage may have changed",
    ):
        assert said in scope_of(VerifyReport.of(little)) and said not in scope_of(
            VerifyReport.of(much)
        )
    both = several(little, much, not_checked=[NOT_CHECKED], left_out=LEFT_OUT)
    said = sentences(both.to_html())
    assert (
        said["Tables"] == "2 tables of lake.db; 1 could not be checked; 3 were left out on request."
    )
    assert (
        said["Snapshots"]
        == "All snapshots of 1 table, and what remains of expired ones in the metadata files that "
        "tables still list. The current snapshot, branches and tags of 1 table. Other snapshots were not checked."
    )
    assert said["Depth"].startswith("1 table: The first bytes of each file were read")
    alone = several(verify_json(snapshot_history=[GOOD_SNAPSHOT]))
    assert "other snapshots" not in alone.to_html().lower()


@pytest.mark.parametrize("depth", ["magic", "structure", "deep"])
def test_depth_is_not_said_of_files_that_were_not_read(depth: str) -> None:
    """The sentence below the verdict, which may be quoted alone."""
    whole = verify_json(depth=depth)
    assert "except for" not in _scope.depths([VerifyReport.of(whole)])
    for change, said in (
        ({"sample": 0.5, "seed": 1}, "files that were not in the sample"),
        ({"resume": "r", "resumed_files": 1}, "files that an earlier run had recorded as correct"),
        (
            {
                "resume": "r",
                "resumed_files": 1,
                "since": {"recheck": 1, "rechecked_files": 0, "unsigned_files": 0},
            },
            "files that an earlier report vouches for",
        ),
        ({"strays": True}, "files that no metadata names (only their first bytes were read)"),
        ({"problem_count": 1}, "files with a problem"),
        ({"unchecked_count": 1}, "files that could not be checked"),
    ):
        report = VerifyReport.of({**whole, **change})
        assert f", except for {said}." in _scope.depths([report])
        assert f", except for {said}." in several(whole, {**whole, **change}).to_html()


def test_the_top_of_a_page_adds_up_what_was_not_checked() -> None:
    resumed = verify_json(resume="s3://b/r", resumed_files=3, metadata_authenticated=False)
    both = several(resumed, {**resumed, "resumed_files": 2}, OPEN, GOOD)
    assert ", 5 files checked before" in " ".join(str(both).split())
    top, _, _ = both.to_html().partition('aria-label="Tables"')
    for said in (
        "5 files of 2 tables that an earlier run had recorded in s3://b/r as correct were not read again",
        "1 file of 1 table could not be checked: nothing is known about it.",
        "The metadata of 2 tables that names the files is not authenticated",
        "Files of 4 tables that only other snapshots reach.",
    ):
        assert said in top


def test_files_below_a_manifest_that_was_not_read_may_not_be_counted() -> None:
    said = "named only by a metadata file, manifest list or manifest that has a problem"
    assert said in VerifyReport.of(BAD).to_html() and said not in VerifyReport.of(OPEN).to_html()


def test_plaintext_that_was_not_purged_is_at_the_top() -> None:
    left = verify_json(plaintext_metadata="s3://b/plain.metadata.json")
    for report in (VerifyReport.of(left), several(GOOD, left)):
        _, _, body = report.to_html().partition("</h1>")
        assert body.index("Plaintext was not purged") < body.index('class="verdict')
    page = several(GOOD, left).to_html()
    assert '<a href="#report-2">lake.db.t</a></li></ul>' in page
    assert '<td class="bad-text">! encrypted, PLAINTEXT not purged</td>' in page
    assert "not purged" not in several(GOOD, GOOD).to_html()


def test_each_picture_is_told_in_words() -> None:
    page = VerifyReport.of(BAD).to_html()
    told = re.findall(r'<(?:svg|div) [^>]*role="img" aria-label="([^"]+)"', page)
    assert len(told) == 3  # kinds, ages, history
    assert "manifest: 62.5% encrypted, 37.5% damaged: 8.0 KB, 2 files" in told[0]
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]+)\)", page)) <= set(ids)


def test_two_notes_in_a_notebook_share_no_id() -> None:
    notes = VerifyReport.of(GOOD)._repr_html_() + VerifyReport.of(BAD)._repr_html_()
    ids = re.findall(r'\bid="([^"]+)"', notes)
    assert len(ids) == len(set(ids))


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def themes() -> Iterator[dict[str, str]]:
    for block in re.findall(r"\.ic \{(.*?)\}", _html._style(), re.DOTALL)[:2]:
        yield dict(re.findall(r"--([\w-]+): (#\w{6})", block))


def test_texts_and_bars_can_be_told_from_what_is_behind_them() -> None:
    """WCAG 2.2: 4.5 for text (1.4.3), 3 for graphics (1.4.11)."""
    light, dark = themes()
    for colours in (light, dark):
        texts = [(name, ground) for name in ("ink", "dim") for ground in ("ground", "card")]
        texts += [(name, f"{name}-ground") for name in ("good", "bad", "open")]
        texts += [(name, "card") for name in ("good", "bad", "wrong", "open")]
        texts += [("ink", f"{name}-ground") for name in ("good", "bad", "open")]
        bars = [(f"{name}-bar", "card") for name in ("good", "bad", "wrong", "open")]
        for least, pairs in ((4.5, texts), (3.0, bars)):
            for front, back in pairs:
                bright, dull = sorted((luminance(colours[front]), luminance(colours[back])))[::-1]
                assert (bright + 0.05) / (dull + 0.05) >= least, (front, back)


# ---- pictures


def count(kind: str, magic: str | None, files: int, size: int) -> FileCount:
    return FileCount(kind, magic, magic in ("PARE", "AGS1"), files, size)


def test_a_share_is_100_only_when_it_is_all() -> None:
    assert _charts.percent(0, 0) == _charts.percent(0, 5) == "0%"
    assert _charts.percent(5, 5) == "100%"
    assert _charts.percent(999_999_999, 10**9) == "99.9%"
    assert _charts.percent(1, 10**9) == "0.1%"


def test_a_single_plaintext_byte_is_seen() -> None:
    bars = _charts.by_kind([count("data", "PARE", 9, 10**12), count("data", "PAR1", 1, 1)])
    assert bars is not None
    good, bad = bars.rows[0].parts
    assert (good.kind, bad.kind) == ("good", "bad")
    assert bad.width >= 1 and bad.x + bad.width <= _charts.WIDTH
    assert bars.rows[0].told == "99.9% encrypted, 0.1% PLAINTEXT: 1.0 TB, 10 files"
    assert bars.description == f"data: {bars.rows[0].told}."


def test_empty_files_are_drawn_by_their_number() -> None:
    bars = _charts.by_kind([count("data", "AGS1", 1, 0), count("data", None, 1, 0)])
    assert bars is not None
    assert [part.width for part in bars.rows[0].parts] == [_charts.WIDTH / 2] * 2
    assert _charts.by_kind([]) is None


def test_a_file_with_a_problem_is_not_among_the_good() -> None:
    """Whatever it starts with: it may be damaged, or lack its key, and one that is missing starts with nothing."""
    damaged = FileCount("data", "PARE", True, 4, 100, 1, 20, 2, 30)
    missing = FileCount("manifest", None, False, 2, 0, 1, 0, 1, 0)
    plain = FileCount("data", "PAR1", False, 1, 9, 1, 9)
    told = [(one.state, one.files, one.bytes) for one in _words.parts([damaged, missing, plain])]
    assert told == [
        *[("good", 1, 50), ("wrong", 1, 20), ("open", 2, 30)],
        *[("open", 1, 0), ("wrong", 1, 0), ("bad", 1, 9)],
    ]
    key = {"key_id": "k", "kind": "kek", "age_days": 3, "problem": "it cannot be unwrapped"}
    ages = _charts.ages([key])
    assert ages is not None and [part.kind for part in ages.rows[0].parts] == ["wrong"]


def test_nothing_is_called_damaged_that_is_not_listed() -> None:
    found = {**BAD, "problem_count": 3}
    assert "is damaged" in str(VerifyReport.of(BAD))
    assert "damaged" not in str(VerifyReport.of(found))


@pytest.mark.parametrize("change", [{"files": 900}, {"bytes": 1}, {"counts": []}], ids=str)
def test_a_report_that_contradicts_itself_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="lake.db.t contradicts itself"):
        VerifyReport.of({**GOOD, **change})


def test_a_report_that_says_it_is_ok_is_not_while_a_file_is_not() -> None:
    for more in ({"magic": "PAR1", "encrypted": False}, {"wrong_files": 1}, {"unchecked_files": 1}):
        counts = [{**GOOD["counts"][0], **more}, GOOD["counts"][1]]
        report = VerifyReport.of({**GOOD, "counts": counts})
        assert (
            not report.ok
            and "✓" not in str(report)
            and 'class="verdict good"' not in report.to_html()
        )
    counts = [{**GOOD["counts"][0], "wrong_files": 2, "unchecked_files": 2}, GOOD["counts"][1]]
    with pytest.raises(ConfigurationError, match="contradicts itself"):
        VerifyReport.of({**GOOD, "counts": counts})


def test_one_number_of_files() -> None:
    """In verdict, scope and tables, whose rows add up; metadata files, which are never encrypted, are not in it."""
    report = VerifyReport.of(BAD)
    found = "1 is PLAINTEXT, 1 is damaged, 1 could not be checked and 4 are encrypted"
    assert (
        f"Of the 7 files in all snapshots and folders of lake.db.t (master key 'k1'), {found}"
        in " ".join(str(report).split())
    )
    page = report.to_html()
    for table in re.findall(r"<table(?: class=.totals.)?>\n<thead>.*?</table>", page, re.DOTALL)[
        :2
    ]:
        counted, _, never = table.partition("All files")
        files = [int(one) for one in re.findall(r'"number">(\d+)</td><td', counted)]
        assert sum(files) == 7 and never.startswith('</th><td class="number">7</td>')
    assert 'never encrypted, not counted</td><td class="number">2</td>' in never
    both = VerifyTablesReport("lake.db", [report, report], [])
    assert "14 files in 2 tables" in str(both)
    assert "<dd>14 files (2.0 MB)." in both.to_html()
    assert 'data-name="files">14</td>' in both.to_html()


def test_a_file_with_a_problem_is_among_those_that_should_be_encrypted() -> None:
    """Plaintext beside a table of another format is JSON, too, as files are that are never encrypted."""
    log = FileCount("delta log", "JSON", False, 5, 500, 5, 500)
    report = VerifyReport.of(BAD)
    report = replace(
        report, counts=[*report.counts, log], file_count=14, byte_count=report.byte_count + 500
    )
    assert _words.file_count(report) == sum(one.files for one in _words.totals(report)) == 12
    assert _words.byte_count(report) == 1_008_500
    partly = replace(report, counts=[replace(log, wrong_files=3, wrong_bytes=300)])
    assert [one.files for one in _words.never_encrypted(partly)] == [2]
    report = replace(report, counts=[log], file_count=5, byte_count=500)
    assert (_words.file_count(report), _words.byte_count(report)) == (5, 500)
    page = report.to_html()
    assert "not counted" not in page and "PLAINTEXT: 500 B, 5 files" in page


@pytest.mark.parametrize(
    ("kind", "wrong", "told"),
    [
        ("metadata file", 0, "never encrypted"),
        ("metadata file", 2, "with a problem"),
        ("delta log", 0, "not encrypted"),
        ("delta log", 2, "PLAINTEXT"),
    ],
)
def test_a_picture_and_a_table_say_the_same_of_files(kind: str, wrong: int, told: str) -> None:
    counted = FileCount(kind, "JSON", False, 2, 20, wrong, wrong * 10)
    bars = _charts.by_kind([counted])
    assert (bars.rows[0].told if bars else None) == (f"{told}: 20 B, 2 files" if wrong else None)
    assert [part.word for part in _words.parts([counted])] == [told]


def test_ages_of_keys() -> None:
    bars = _charts.ages(BAD["encryption_keys"])
    assert bars is not None
    assert [(row.name, row.told) for row in bars.rows] == [("kek-1", "800 days, overdue")]
    assert _charts.ages([{"key_id": "k1", "kind": "master"}]) is None


def test_a_history_is_drawn_in_the_order_of_time() -> None:
    told = [SnapshotTotal(i, f"2026-01-0{i}T00:00:00Z", i, 500 * i) for i in (3, 1, 2)]
    curve = _charts.history([*told, SnapshotTotal(9, "2026-01-09T00:00:00Z")])
    assert curve is not None
    assert [dot.x for dot in curve.dots] == sorted(dot.x for dot in curve.dots)
    assert "3 snapshots from 2026-01-01T00:00:00Z" in curve.description
    assert [tick.told for tick in curve.y_ticks] == ["0 B", "1.0 KB", "2.0 KB"]
    assert _charts.history(told[:1]) is None
    assert _charts.history([told[0], told[0]]) is None, "no time has passed"
    assert _charts.history([SnapshotTotal(i, f"2026-01-0{i}T00:00:00Z", 0, 0) for i in (1, 2)])


# ---- signatures


def test_a_signed_report_is_what_the_jvm_signed(jvm: dict[str, Any]) -> None:
    jvm["signReport"] = json.dumps(SIGNATURE)
    for report in (VerifyReport.of(BAD), several(GOOD, BAD)):
        signed = report.sign("spark", "lake", "k1")  # type: ignore[arg-type]
        method, catalog, key_id, text = jvm["calls"].pop()
        assert (method, catalog, key_id) == ("signReport", "lake", "k1")
        assert json.loads(text) == {**signed.to_dict(), "signature": None}
        assert signed.signature == SIGNATURE and report.signature is None
        VALIDATOR.validate(signed.to_dict())
        assert "signed with master key 'k<1>'" in str(signed)


def test_check_report_gives_the_file_as_it_is(jvm: dict[str, Any], tmp_path: Path) -> None:
    for report in (VerifyReport.of(BAD), several(GOOD, BAD)):
        file = tmp_path / "report.json"
        file.write_text(report.to_json())
        assert check_report("spark", "lake", file, "k1") == report  # type: ignore[arg-type]
        assert jvm["calls"].pop() == ("check_report", "lake", "k1", file.read_text())
    signed = replace(report, signature=SIGNATURE)
    file.write_text(signed.to_json())
    assert "Signature genuine" in check_report("spark", "lake", file).to_html()  # type: ignore[arg-type]


def test_a_signature_says_nothing_more(jvm: dict[str, Any], tmp_path: Path) -> None:
    """Whoever signs can put members into it, which the MAC then covers."""
    file = tmp_path / "report.json"
    for signature in ({**SIGNATURE, "kind": "good"}, "x", {"mac": "x"}):
        file.write_text(json.dumps({**VerifyReport.of(BAD).to_dict(), "signature": signature}))
        with pytest.raises(TamperedError, match="not genuine"):
            check_report("spark", "lake", file)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"\xff{}",
        b"{}",
        b'{"schema_version": 2}',
        b'{"schema_version": 1}',
        b'{"schema_version": 1, "reports": 5}',
        b"[" * 100_000,
    ],
    ids=lambda text: text[:30],
)
def test_what_is_no_report(jvm: dict[str, Any], tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "report.json"
    file.write_bytes(text)
    with pytest.raises(ConfigurationError, match="is not a report of this version"):
        check_report("spark", "lake", file)  # type: ignore[arg-type]


def test_a_report_that_is_not_there(tmp_path: Path) -> None:
    for file in (tmp_path / "none.json", tmp_path):
        with pytest.raises(ConfigurationError, match="cannot be read"):
            check_report("spark", "lake", file)  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [TamperedError, BadWrappedKeyError, KmsUnavailableError])
def test_what_the_kms_says_is_raised(
    jvm: dict[str, Any], tmp_path: Path, error: type[Exception]
) -> None:
    (tmp_path / "report.json").write_text(VerifyReport.of(BAD).to_json())
    jvm["check_report"] = error("no", "hint")
    with pytest.raises(error):
        check_report("spark", "lake", tmp_path / "report.json")  # type: ignore[arg-type]

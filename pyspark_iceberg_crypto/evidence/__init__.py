"""The report as evidence: a page for auditors, and a signature that can be checked later."""

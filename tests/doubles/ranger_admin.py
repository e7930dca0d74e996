"""A double of Ranger Admin: what a Ranger KMS asks it for, the policies of its service."""

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

from doubles.served import Served, Silent

SERVICE = "kms"
_DOWNLOAD = f"/service/plugins/policies/download/{SERVICE}"


class RangerAdmin(Served):
    """Listens on 127.0.0.1 once it is started. There are no policies at first: nobody may do anything."""

    def __init__(self, definition: dict[str, Any]) -> None:
        """Nothing listens yet.

        Args:
            definition: Ranger's own of what a KMS is: its resources and operations.
        """
        self._definition = definition
        self._policies: tuple[int, list[dict[str, Any]]] = (1, [])

    def allow(self, *policies: dict[str, Any]) -> None:
        """Has these policies and no others; a KMS asks every second."""
        numbered = [{**policy, "id": number} for number, policy in enumerate(policies)]
        self._policies = (self._policies[0] + 1, numbered)

    def newer_than(self, version: int) -> dict[str, Any] | None:
        """What a KMS is told that has that version of the policies."""
        newest, policies = self._policies
        return (
            None
            if version == newest
            else {
                "serviceName": SERVICE,
                "serviceDef": self._definition,
                "policyVersion": newest,
                "policies": policies,
            }
        )


def policy(user: str, operations: Sequence[str], key: str = "*") -> dict[str, Any]:
    """A policy as Ranger Admin has them: what a user may do with keys.

    Args:
        user: the user's name.
        operations: as Hadoop KMS calls them, such as GENERATE_EEK.
        key: a pattern of their names.
    """
    types = [operation.lower().replace("_", "") for operation in operations]
    return {
        "service": SERVICE,
        "name": f"{user} {key}",
        "isEnabled": True,
        "resources": {"keyname": {"values": [key]}},
        "policyItems": [
            {"users": [user], "accesses": [{"type": name, "isAllowed": True} for name in types]}
        ],
    }


class _Handler(Silent):
    def do_GET(self) -> None:  # noqa: N802
        asked = urlsplit(self.path)
        if asked.path != _DOWNLOAD:
            self.send_error(404)
            return
        told = self.double.newer_than(int(parse_qs(asked.query)["lastKnownVersion"][0]))
        body = b"" if told is None else json.dumps(told).encode()
        self.send_response(304 if told is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


RangerAdmin.handler = _Handler

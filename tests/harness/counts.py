"""What long tests print of what they have counted."""

from collections import Counter


def told(counts: Counter[str]) -> str:
    """Each name with its number, by name; or "nothing"."""
    return ", ".join(f"{name} {number}" for name, number in sorted(counts.items())) or "nothing"

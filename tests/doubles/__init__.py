"""What stands in for a server or an error that cannot be had here."""

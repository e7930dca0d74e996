"""Real servers, each in a process of its own, on 127.0.0.1."""

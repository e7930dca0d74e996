"""What can be done: each function is a call of an operation that Java declares."""

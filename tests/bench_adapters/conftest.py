"""Makes the helpers in this folder (`fuzz`) importable from the tests below it."""

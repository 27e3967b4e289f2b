"""`python -m envrate`."""

from envrate.cli import main

main()

"""`python -m shoal` is the command line."""

from shoal.cli.entry import run

if __name__ == "__main__":
    run()

"""``python -P -m accord``: the same program as the ``accord`` command."""

from accord.cli.main import main

if __name__ == "__main__":
    main()

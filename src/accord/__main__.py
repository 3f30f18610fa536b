"""The installed command ``accord``, and ``python -P -m accord``."""

import os


def main() -> None:
    """Import the command line and run it. Ctrl-C before it can run ends the process with 130, without a traceback."""
    try:
        import signal

        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
        from accord.cli.main import main as run
    except KeyboardInterrupt:
        os._exit(130)
    run()


if __name__ == "__main__":
    main()

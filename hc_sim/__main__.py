"""The command `hc-sim`, deaf to no Ctrl-C: nothing heavy is imported before it can be answered."""

import sys


def main() -> None:
    """Run the command; after a Ctrl-C, even before it began, one word and its exit code."""
    try:
        from hc_sim.cli import main as command

        command(prog_name="hc-sim")
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()

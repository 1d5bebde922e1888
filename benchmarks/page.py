"""Turn what `make bench` prints, on standard input, into the second half of docs/benchmarks.md."""

import os
import platform
import re
import sys
from importlib.metadata import version
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs/benchmarks.md"
MARK = "<!-- below: written by make bench-page -->\n"
HEADING = re.compile(r"^(?P<title>\S.*)\n-{3,}$", flags=re.MULTILINE)


def heading(text: str) -> None:
    """Print what `sections` takes for the title of a section."""
    print(f"\n{text}\n{'-' * len(text)}", flush=True)


def sections(log: str) -> str:
    """A section per heading, with its lines as they were printed."""
    before, *parts = HEADING.split(log)
    found = [("What was printed first", before), *zip(parts[::2], parts[1::2], strict=True)]
    return "\n".join(
        f"### {title}\n\n```\n{body.strip(chr(10))}\n```\n" for title, body in found if body.strip()
    )


def written(page: str, log: str, machine: str) -> str:
    """The page with this log below its mark, in place of the last."""
    head = page.partition(MARK)[0].rstrip() + "\n\n"
    return f"{head}{MARK}\n## The last run\n\nMeasured with {machine}.\n\n{sections(log)}"


def main() -> None:
    names = ("hiddenmanifold", "numpy", "scipy", "scikit-learn")
    told = [f"{name} {version(name)}" for name in names] + [f"Python {platform.python_version()}"]
    log = "".join(map(echoed, sys.stdin))
    machine = ", ".join(told) + f" on {os.cpu_count()} cores"
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), log, machine))


def echoed(line: str) -> str:
    print(line, end="", flush=True)
    return line


if __name__ == "__main__":
    main()

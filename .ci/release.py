"""Write a release's version and its section of the changelog: `make release VERSION=1.2.3`.

What was under [Unreleased] in CHANGELOG.md becomes the release's section. `--check` only compares: the workflow that a
tag starts asks whether the tag, the version and the changelog agree.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
VERSION_FILE = "torchgraph_explorer/version.py"
CITATION = "CITATION.cff"
CHANGELOG = "CHANGELOG.md"
RELEASE = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")
UNRELEASED = "## [Unreleased]\n"


class ReleaseError(Exception):
    """The release cannot be made. The message says why."""


def main() -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("version", metavar="VERSION", help="such as 1.2.3 or 1.2.3rc1")
    parser.add_argument("--check", action="store_true", help="change nothing; say whether all files have this version")
    parser.add_argument("--notes", type=Path, metavar="FILE", help="write the changelog's section of it to a file")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        if not options.check:
            write(options.root, options.version, datetime.datetime.now(datetime.timezone.utc).date())
        notes = check(options.root, options.version)
        if options.notes is not None:
            options.notes.write_text(notes, encoding="utf-8")
    except ReleaseError as fault:
        print(f"release: {fault}", file=sys.stderr)
        return 1
    if not options.check:
        tag = f"v{options.version}"
        print(f"Now: git commit -am 'Release {options.version}' && git tag {tag} && git push origin HEAD {tag}")
    return 0


def write(root: Path, version: str, day: datetime.date) -> None:
    """Put `version` into the three files that name it."""
    if not RELEASE.fullmatch(version):
        raise ReleaseError(f"{version!r} is no version. Write it as 1.2.3 or 1.2.3rc1, without a v.")
    changelog = (root / CHANGELOG).read_text(encoding="utf-8")
    if f"\n## [{version}]" in changelog:
        raise ReleaseError(f"{CHANGELOG} has a section of {version} already. Choose the next version.")
    if not section(changelog, "Unreleased").strip():
        raise ReleaseError(f"{CHANGELOG} has nothing under [Unreleased]. Write there what users can do now.")
    dated = changelog.replace(UNRELEASED, f"{UNRELEASED}\n## [{version}] - {day.isoformat()}\n", 1)
    (root / CHANGELOG).write_text(dated, encoding="utf-8")
    replace(root / VERSION_FILE, r'^__version__ = ".*"$', f'__version__ = "{version}"')
    replace(root / CITATION, r"^version: .*$", f"version: {version}")


def check(root: Path, version: str) -> str:
    """The changelog's section of `version`, if all files have that version."""
    for name, line in {VERSION_FILE: f'__version__ = "{version}"', CITATION: f"version: {version}"}.items():
        if line not in (root / name).read_text(encoding="utf-8").splitlines():
            raise ReleaseError(f"{name} has no line {line!r}. Run: make release VERSION={version}")
    notes = section((root / CHANGELOG).read_text(encoding="utf-8"), version).strip()
    if not notes:
        raise ReleaseError(f"{CHANGELOG} has no section of {version}. Run: make release VERSION={version}")
    return f"{notes}\n"


def section(changelog: str, name: str) -> str:
    """What stands under a heading `## [name]`; empty without one."""
    found = re.search(rf"^## \[{re.escape(name)}\][^\n]*\n(.*?)(?=^## |\Z)", changelog, re.DOTALL | re.MULTILINE)
    return found[1] if found else ""


def replace(file: Path, pattern: str, line: str) -> None:
    """Replace the one line of `file` that `pattern` matches."""
    text, count = re.subn(pattern, line, file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if count != 1:
        raise ReleaseError(f"{file} has {count} lines like {pattern}, and should have one.")
    file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

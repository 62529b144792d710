"""The rules that keep the source tree in shape; lint.py applies them and rules_test.py tests them.

A rule takes a SourceFile and yields a message for each finding. The table of folders below is the one of
the architecture: who may include whom.
"""

import dataclasses
import pathlib
import re

MAX_LINES = 600
CODE_SUFFIXES = {".h", ".cpp", ".c", ".def", ".comp", ".glsl", ".py", ".sh", ".cmake"}
CXX_SUFFIXES = {".h", ".cpp", ".c", ".def", ".comp", ".glsl"}

KERNEL_FOLDERS = [f"compiler/kernel/{name}" for name in (
    "interface", "ir", "index", "analysis", "access", "transform", "cost", "explain", "codegen", "spirv", "interpret", "cache",
    "tiers", "backend", "fuzz")]

# Headers of the kernel compiler with entries of their own below: the one that all of it stands on, and the façade, which
# only what stands above the compiler includes, so that a change of it does not rebuild the compiler.
KERNEL_BINDINGS = "compiler/kernel/interface/binding_layout.h"
KERNEL_FACADE = "compiler/kernel/kernel_compiler.h"

# Folder or file -> folders whose headers its files may include, beside its own. The longest entry that a
# path lies under decides, for the file that includes and for the header alike: to name a folder here opens
# none of the folders in it that have entries of their own. What is missing here may include anything.
MAY_INCLUDE = {
    "base": [],
    "hal": ["base"],
    # The factory, which picks a backend.
    "hal/backends.cpp": ["base", "hal", "hal/support", "hal/model", "hal/null"],
    "hal/support": ["base", "hal"],
    "hal/model": ["base", "hal", "hal/support"],
    "hal/null": ["base", "hal", "hal/support"],
    "hal/conformance": ["base", "hal"],
    # The described NPU in time. Its parts stand on each other, and on nothing else.
    "npu/description": ["base"],
    "npu/units": ["base", "npu/description"],
    "npu/replay": ["base", "npu/description", "npu/units"],
    "npu/sweep": ["base", "npu/description", "npu/units", "npu/replay"],
    "compiler": ["base"],
    "compiler/kernel": ["base", "hal", "npu/description", "npu/units", "npu/replay", KERNEL_BINDINGS, KERNEL_FACADE,
                        *KERNEL_FOLDERS],
    KERNEL_BINDINGS: ["hal"],
    KERNEL_FACADE: ["base", "hal", "compiler/kernel/interface"],
    "compiler/kernel/interface": ["base", "hal", "npu/description", "npu/units", "npu/replay", KERNEL_BINDINGS],
    "compiler/kernel/ir": ["base", "hal", KERNEL_BINDINGS],
    "compiler/kernel/index": ["base", "compiler/kernel/ir"],
    "compiler/kernel/analysis": ["base", "hal", "compiler/kernel/ir", "compiler/kernel/index"],
    "compiler/kernel/explain": ["hal"],
    "compiler/kernel/access": ["base", "hal", "compiler/kernel/ir", "compiler/kernel/index", "compiler/kernel/analysis",
                               "compiler/kernel/explain"],
    "compiler/kernel/transform": ["base", "hal", "compiler/kernel/interface", "compiler/kernel/ir",
                                  "compiler/kernel/index", "compiler/kernel/analysis"],
    "compiler/kernel/cost": ["base", "npu/description", "npu/units", "npu/replay", "compiler/kernel/interface",
                             "compiler/kernel/ir", "compiler/kernel/index", "compiler/kernel/transform"],
    "compiler/kernel/codegen": ["base", "hal", "compiler/kernel/interface", "compiler/kernel/ir", "compiler/kernel/index",
                                "compiler/kernel/analysis", "compiler/kernel/access", "compiler/kernel/explain"],
    "compiler/kernel/spirv": ["base", "hal", "compiler/kernel/interface", "compiler/kernel/ir"],
    "compiler/kernel/interpret": ["base", "hal", "compiler/kernel/ir"],
    "compiler/kernel/cache": ["base", "hal", "compiler/kernel/interface", KERNEL_BINDINGS, "compiler/kernel/codegen"],
    "compiler/kernel/tiers": ["base", "hal", "compiler/kernel/interface", "compiler/kernel/cache", "compiler/kernel/codegen"],
    # What the tiers and the façade see of the rest is the interface in backend.h.
    "compiler/kernel/backend": ["base", "hal", *(folder for folder in KERNEL_FOLDERS if not folder.endswith(("/tiers", "/fuzz")))],
    "compiler/kernel/fuzz": ["base", "hal", "compiler/kernel", *KERNEL_FOLDERS],
    "compiler/graph": ["base", "shaders"],
    "compiler/frontends": ["base", "compiler/graph"],
    "shaders": ["base"],
    "driver": ["base", "hal", "npu/description", "npu/units", "npu/replay", "compiler/kernel/interface",
               "compiler/kernel/cache", KERNEL_BINDINGS, KERNEL_FACADE],
    "icd": ["base", "driver"],
    "runtime": ["base", "npu/description", "compiler/graph", "compiler/frontends", "runtime/npu", "runtime/plan", "runtime/vulkan"],
    # What players have in common knows neither Vulkan nor the HAL; the HAL's player is for the driver.
    "runtime/plan": ["base", "compiler/graph"],
    "runtime/hal": ["base", "hal", "compiler/graph", "compiler/kernel/interface", KERNEL_FACADE, "runtime/plan"],
    "runtime/npu": ["base", "npu/description", "npu/units", "npu/replay", "compiler/graph", "runtime/plan"],
    "runtime/vulkan": ["base"],
    "python": ["runtime"],
    "tools": None,
    "tests": None,
}

# Backends stand behind hal/'s headers: only themselves and the factory see them.
BACKENDS = ("hal/model", "hal/null")

# Tests beside the code may also use the helpers of these folders.
TEST_HELPER_FOLDERS = ["base", "tests"]

# The driver's own namespace, which sources beside it use and do not add to.
DRIVER_NAMESPACE = re.compile(r"^[^\n/]*\bnamespace\s+(?:fornax\s*::\s*)?driver\b[\w:\s]*\{", re.MULTILINE)

# The kernel compiler's tests compare one of its folders with another: the interpreter with native code, for one.
KERNEL_TEST_FOLDERS = ["compiler/kernel", KERNEL_BINDINGS, KERNEL_FACADE, *KERNEL_FOLDERS]

# What only tests link, though its name does not say so.
TEST_HELPERS = {
    "compiler/kernel/spirv/shader_harness.cpp",
}

# The one file that may read environment variables: it knows when the process is privileged.
ENVIRONMENT_READER = "base/environment.cpp"
ENVIRONMENT_ACCESS = re.compile(r"\b(?:_*(?:secure_)?getenv\s*\(|environ\b)")

VULKAN_HEADER = re.compile(r"^(vulkan/|vk_video/|volk\.h)")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)

# Paths of somebody's machine, and addresses that come from the machine's own configuration. They are
# spelled in pieces so that this file passes its own rule.
FORBIDDEN_TEXT = [
    (re.compile(r"(?<![\w.$}/-])/(?:work|root|farm|mnt)/|(?<![\w.$}/-])/home/\w"), "a path of one machine"),
    (re.compile(r"deb\.deb" r"ian\.org|snapshot\.deb" r"ian|archive\.ubun" r"tu|pypi\.o" r"rg|"
                r"pythonhos" r"ted|npmjs\.o" r"rg|artifactregis" r"try"), "the host of a package registry"),
    (re.compile(r"^(?:<{7}|>{7}) .*", re.MULTILINE), "the mark of a conflict that was not merged"),
]


@dataclasses.dataclass(frozen=True)
class SourceFile:
    path: str  # relative to the root, with '/'
    text: str

    @property
    def suffix(self):
        return pathlib.PurePosixPath(self.path).suffix

    @property
    def name(self):
        return pathlib.PurePosixPath(self.path).name

    @property
    def is_code(self):
        return self.suffix in CODE_SUFFIXES or self.name == "CMakeLists.txt" or self.is_script

    @property
    def is_script(self):
        return self.suffix == "" and self.text.startswith("#!")

    @property
    def is_test(self):
        stem = pathlib.PurePosixPath(self.path).stem
        return self.path in TEST_HELPERS or stem.endswith(("_test", "_bench", "_fuzz")) or stem.startswith("test_")


def includes(file):
    """(header, line number) of every #include."""
    for match in INCLUDE.finditer(file.text):
        yield match.group(2), file.text.count("\n", 0, match.start(2)) + 1


def is_under(path, folder):
    return path == folder or path.startswith(folder + "/")


def folder_rule(path):
    """The entry of MAY_INCLUDE that decides for a path: (folder, allowed), or None."""
    folders = [folder for folder in MAY_INCLUDE if is_under(path, folder)]
    if not folders:
        return None
    folder = max(folders, key=len)
    return folder, MAY_INCLUDE[folder]


def check_include_direction(file):
    """Headers are included downwards only."""
    if file.suffix not in CXX_SUFFIXES:
        return
    rule = folder_rule(file.path)
    if rule is None or rule[1] is None:
        return
    folder, allowed = rule
    allowed = [folder, *allowed]
    if file.is_test:
        allowed += TEST_HELPER_FOLDERS
        allowed += KERNEL_TEST_FOLDERS if is_under(folder, "compiler/kernel") else []
    for header, line in includes(file):
        header_rule = folder_rule(header)
        if header_rule is None:
            continue  # not a header of ours
        if header_rule[0] not in allowed:
            yield line, f"{folder} may not include {header}"


def check_vulkan_headers(file):
    """The HAL, the compiler and what plays plans without Vulkan know nothing of its API."""
    if file.suffix not in CXX_SUFFIXES:
        return
    if not any(is_under(file.path, folder)
               for folder in ("base", "hal", "npu", "compiler", "shaders", "runtime/plan", "runtime/hal", "runtime/npu")):
        return
    for header, line in includes(file):
        if VULKAN_HEADER.match(header):
            yield line, f"includes the Vulkan header {header}; only driver/, icd/ and programs may"


def check_backend_names(file):
    """The driver reaches the device through hal/ alone, and does not even speak of a backend."""
    if file.suffix not in CXX_SUFFIXES or not is_under(file.path, "driver") or file.is_test:
        return
    included = {line for _, line in includes(file)}  # which MAY_INCLUDE judges
    for backend in BACKENDS:
        for match in re.finditer(rf"\b{backend}\b", file.text):
            line = file.text.count("\n", 0, match.start()) + 1
            if line not in included:
                yield line, f"names the HAL backend {backend}; the driver knows only the contract in hal/"


def check_icd_namespace(file):
    """The library that the loader opens stands before the driver; it is no part of it."""
    if file.suffix not in CXX_SUFFIXES or not is_under(file.path, "icd"):
        return
    for match in DRIVER_NAMESPACE.finditer(file.text):
        line = file.text.count("\n", 0, match.end()) + 1
        yield line, "opens namespace fornax::driver; what icd/ defines belongs to fornax::icd"


def check_environment(file):
    """What the libraries read from the environment comes through base/environment.h."""
    if file.suffix not in CXX_SUFFIXES or file.is_test or file.path == ENVIRONMENT_READER:
        return
    if not any(is_under(file.path, folder) for folder in ("base", "hal", "npu", "compiler", "driver", "icd")):
        return
    for match in ENVIRONMENT_ACCESS.finditer(file.text):
        line = file.text.count("\n", 0, match.start()) + 1
        yield line, f"reads the environment itself ({match.group(0)}); base/environment.h does it for all"


def check_length(file):
    lines = file.text.count("\n")
    if file.is_code and lines > MAX_LINES:
        yield lines, f"has {lines} lines; at most {MAX_LINES} are allowed"


def own_header(file):
    """The header that a source file or its test belongs to: a/b.h for a/b.cpp and a/b_test.cpp."""
    path = pathlib.PurePosixPath(file.path)
    stem = re.sub(r"_(test|bench|fuzz)$", "", path.stem)
    return str(path.with_name(stem + ".h"))


def check_first_comment(file):
    """The first line (after #!, #version and #extension) is a comment that says what the file is for.

    A source file or test may begin with its own header instead, whose first comment says it for both.
    """
    if not file.is_code or file.name in ("__init__.py", "CMakeLists.txt"):
        return
    lines = [line for line in file.text.split("\n") if not line.startswith(("#!", "#version", "#extension"))]
    first = lines[0] if lines else ""
    if first == f'#include "{own_header(file)}"':
        return
    if file.suffix in CXX_SUFFIXES:
        match = re.match(r"//+\s*(.*)|/\*+\s*(.*)", first)
    else:
        match = re.match(r'#+\s*(.*)|"""(.*)', first)
    text = (match.group(1) or match.group(2) or "") if match else ""
    if not re.search(r"[A-Za-z]{3}", text) or text.strip() in (file.name, file.path):
        yield 1, "does not begin with a comment that says its purpose and its place"


def check_forbidden_text(file):
    for pattern, what in FORBIDDEN_TEXT:
        for match in pattern.finditer(file.text):
            yield file.text.count("\n", 0, match.start()) + 1, f"holds {what}: {match.group(0)}"


def check_comments(file):
    """A comment is a sentence with a subject: none begins as the rest of a name, "Of what it is"."""
    if file.suffix in CXX_SUFFIXES:
        for number, line in enumerate(file.text.split("\n"), 1):
            if re.match(r"\s*// Of\s", line):
                yield number, f"has a comment that is no whole sentence: {line.strip()[:40]}"


def check_white_space(file):
    if "\t" in file.text and file.is_code:
        yield file.text.count("\n", 0, file.text.index("\t")) + 1, "holds a tabulator"
    if file.text and not file.text.endswith("\n"):
        yield file.text.count("\n") + 1, "does not end with a line end"


FILE_RULES = [
    check_include_direction,
    check_vulkan_headers,
    check_backend_names,
    check_icd_namespace,
    check_environment,
    check_length,
    check_first_comment,
    check_forbidden_text,
    check_comments,
    check_white_space,
]


def check_listed_in_cmake(files):
    """Every source file is built: some CMakeLists.txt at or above its folder names it."""
    lists = {str(pathlib.PurePosixPath(file.path).parent): file.text
             for file in files if file.name == "CMakeLists.txt"}
    for file in files:
        if file.suffix not in {".cpp", ".c", ".comp"}:
            continue
        path = pathlib.PurePosixPath(file.path)
        for parent in path.parents:
            listed = str(path.relative_to(parent))
            pattern = rf"(?<![\w./-]){re.escape(listed)}(?![\w.-])"
            if re.search(pattern, lists.get(str(parent), "")):
                break
        else:
            yield file.path, 1, "is named by no CMakeLists.txt, so nothing builds it"


FUZZ_CALL = re.compile(r"\bfornax_fuzz\(([^)]*)\)")


def check_fuzz_targets_run(files):
    """Every fuzz target is one of fornax_fuzz (cmake/FornaxFuzz.cmake), so that a test runs it."""
    calls = {str(pathlib.PurePosixPath(file.path).parent): " ".join(FUZZ_CALL.findall(file.text)).split()
             for file in files if file.name == "CMakeLists.txt"}
    for file in files:
        if file.name.endswith("_fuzz.cpp"):
            path = pathlib.PurePosixPath(file.path)
            if not any(str(path.relative_to(parent)) in calls.get(str(parent), []) for parent in path.parents):
                yield file.path, 1, "is in no fornax_fuzz() of its folders' CMakeLists.txt, so no test runs it"


def check(files):
    """All findings in the files, as (path, line, message)."""
    for file in files:
        for rule in FILE_RULES:
            for line, message in rule(file):
                yield file.path, line, message
    yield from check_listed_in_cmake(files)
    yield from check_fuzz_targets_run(files)

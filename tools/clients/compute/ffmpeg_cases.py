"""FFmpeg's Vulkan filters: frames of a seeded picture in motion, compared with its own filter of the same kind, or, where it has none
that computes the same, with lavapipe's result. Times are of a frame, with its way to the device and back.

Usage: ffmpeg_cases.py FOLDER SUITE LAVAPIPE_MANIFEST, where SUITE has the unpacked packages
"""

import dataclasses
import os
import subprocess
import sys
import time
from pathlib import Path

import case_runner
import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1]))
from client_setup import suite_command  # noqa: E402

WIDTH, HEIGHT, FRAMES = 1280, 720, 8
SECONDS = 0.5  # that a measurement takes, about


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    vulkan: str  # the filter
    cpu: str  # the CPU's, for its time
    same: bool = False  # whether that computes the same; the others differ by a texel or at edges on every driver
    share: float = 0.0  # of the bytes that may differ by more than the tolerance
    inputs: int = 1


TOLERANCE = 2 / 255
# xfade_vulkan and chromaber_vulkan of FFmpeg 9.0 are left out: they write descriptors beyond their sets, or end the program, on
# lavapipe as well.
CASES = (
    Case("hflip", "hflip_vulkan", "hflip"),
    Case("vflip", "vflip_vulkan", "vflip"),
    Case("flip", "flip_vulkan", "hflip,vflip"),
    Case("transpose", "transpose_vulkan=dir=clock", "transpose=dir=clock"),
    Case("overlay", "overlay_vulkan=x=96:y=64", "overlay=x=96:y=64", same=True, inputs=2),
    Case("blend", "blend_vulkan=all_mode=multiply", "blend=all_mode=multiply", same=True, inputs=2),
    Case("avgblur", "avgblur_vulkan=sizeX=5:sizeY=5", "avgblur=sizeX=5:sizeY=5"),
    Case("gblur", "gblur_vulkan=sigma=2:size=13", "gblur=sigma=2"),
    Case("bwdif", "bwdif_vulkan", "bwdif"),
    Case("interlace", "interlace_vulkan", "interlace", same=True, share=0.01),
    Case("nlmeans", "nlmeans_vulkan=s=2:p=5:r=7", "nlmeans=s=2:p=5:r=7", same=True, share=0.01),
    Case("scale", "scale_vulkan=w=640:h=360", "scale=w=640:h=360:flags=bilinear"),
    Case("v360", "v360_vulkan=input=e:output=flat:w=640:h=360", "v360=input=e:output=flat:w=640:h=360", share=0.001),
)


def write_frames(path: Path, seed: int):
    """Waves and noise that move, as planar YUV with chroma of half the size each way."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    noise = random.uniform(-24, 24, (HEIGHT, WIDTH))
    with path.open("wb") as file:
        for frame in range(FRAMES):
            luma = 128 + 64 * np.sin((x + 9 * frame) / (23 + seed)) * np.cos((y - 5 * frame) / 31) + np.roll(noise, 3 * frame, 1)
            file.write(np.clip(luma, 16, 235).astype(np.uint8).tobytes())
            for wave in (17, 29):
                chroma = 128 + 80 * np.sin((x[::2, ::2] + 4 * frame) / wave + y[::2, ::2] / 40)
                file.write(np.clip(chroma, 16, 240).astype(np.uint8).tobytes())


class Filters:
    def __init__(self, folder: Path, suite: Path, judge: Path):
        self.folder, self.judge = folder, judge
        self.program = suite_command(suite, "usr/bin/ffmpeg")

    def ffmpeg(self, case: Case, on_device: bool, frames: int, output: list[str], **environment) -> float:
        """Runs a filter on so many frames; seconds."""
        command = [*self.program, "-hide_banner", "-loglevel", "error", "-nostdin", "-y"]
        if on_device:
            command += ["-init_hw_device", "vulkan=device", "-filter_hw_device", "device"]
        for i in range(case.inputs):
            command += ["-stream_loop", "-1", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", f"{WIDTH}x{HEIGHT}", "-r", "25",
                        "-i", self.folder / f"{i}.yuv"]
        uploads = "".join(f"[{i}:v]{'hwupload' if on_device else 'null'}[i{i}];" for i in range(case.inputs))
        inputs = "".join(f"[i{i}]" for i in range(case.inputs))
        chain = f"{case.vulkan},hwdownload,format=yuv420p" if on_device else f"{case.cpu},format=yuv420p"
        command += ["-filter_complex", f"{uploads}{inputs}{chain}[out]", "-map", "[out]", "-frames:v", str(frames), *output]
        begin = time.perf_counter()
        done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=400)
        if done.returncode:
            raise RuntimeError((done.stderr.strip().splitlines() or ["no word"])[0])
        return time.perf_counter() - begin

    def frames_of(self, case: Case, on_device: bool, **environment) -> np.ndarray:
        path = self.folder / "out.yuv"
        self.ffmpeg(case, on_device, 3, ["-f", "rawvideo", str(path)], **environment)
        return np.fromfile(path, np.uint8)

    def seconds_a_frame(self, case: Case, on_device: bool) -> float:
        """What frames take beyond the start of the program, which has run before."""
        def run(frames):
            return self.ffmpeg(case, on_device, frames, ["-f", "null", "-"])

        run(2)
        if case_runner.ONCE:
            return run(2)
        estimate = max((run(12) - run(2)) / 10, 1e-4)
        count = int(np.clip(SECONDS / estimate, 6, 1000))
        return float(np.median([(run(2 + count) - run(2)) / count for _ in range(3)]))

    def run_case(self, case: Case):
        judge = {"VK_DRIVER_FILES": str(self.judge), "VK_ICD_FILENAMES": str(self.judge)}
        expected = self.frames_of(case, False) if case.same else self.frames_of(case, True, **judge)
        # A run of optimized code before, so that the driver's cache has it.
        self.frames_of(case, True, FORNAX_TIER="1")
        result = self.frames_of(case, True)
        right = case_runner.is_close(result / 255, expected / 255, TOLERANCE, case.share)
        if not right:
            difference = np.abs(result.astype(int) - expected.astype(int)) if result.shape == expected.shape else np.array([-1])
            print(f"{case.name}: {result.shape} {expected.shape}, largest {difference.max()}, "
                  f"{(difference > 2).mean():.3%} over 2", file=sys.stderr)
        case_runner.report(case.name, right=right, seconds=self.seconds_a_frame(case, True),
                           cpu_seconds=self.seconds_a_frame(case, False))


def main():
    folder, suite, judge = map(Path, sys.argv[1:4])
    for i in range(2):
        write_frames(folder / f"{i}.yuv", i)
    filters = Filters(folder, suite, judge)
    for case in CASES:
        try:
            filters.run_case(case)
        except Exception as error:  # whatever a client raises is its answer
            case_runner.report_error(case.name, error)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""tools/cmake/FindOneDnn.cmake on folders of headers that are made up: what it takes, and which oneDNN it refuses and why."""
import os
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROJECT = f"""cmake_minimum_required(VERSION 3.25)
project(finds_onednn NONE)
list(APPEND CMAKE_MODULE_PATH {ROOT}/tools/cmake)
find_package(OneDnn 2.6)
message(STATUS "found: ${{OneDnn_FOUND}} version: ${{OneDnn_VERSION}}")
"""


def configure(config, version="3.13.0"):
    """Returns what cmake says of a oneDNN whose dnnl_config.h has these lines."""
    with tempfile.TemporaryDirectory() as folder:
        headers = os.path.join(folder, "include", "oneapi", "dnnl")
        os.makedirs(headers)
        numbers = zip(("MAJOR", "MINOR", "PATCH"), version.split("."))
        texts = {os.path.join(headers, "dnnl.hpp"): "",
                 os.path.join(headers, "dnnl_config.h"): config,
                 os.path.join(headers, "dnnl_version.h"): "".join(f"#define DNNL_VERSION_{name} {n}\n" for name, n in numbers),
                 os.path.join(folder, "libdnnl.so"): "",
                 os.path.join(folder, "CMakeLists.txt"): PROJECT}
        for path, text in texts.items():
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        result = subprocess.run(["cmake", "-S", folder, "-B", os.path.join(folder, "build"),
                                 f"-DOneDnn_INCLUDE_DIR={folder}/include", f"-DOneDnn_LIBRARY={folder}/libdnnl.so"],
                                capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"})
    return " ".join((result.stdout + result.stderr).split())


def runtimes(cpu, gpu):
    """Returns lines as in dnnl_config.h, which names every runtime before it chooses."""
    return ("#define DNNL_RUNTIME_SYCL 512u\n#define DNNL_RUNTIME_DPCPP DNNL_RUNTIME_SYCL\n"
            f"#define DNNL_CPU_RUNTIME {cpu}\n#define DNNL_GPU_RUNTIME {gpu}\n#if DNNL_CPU_RUNTIME == DNNL_RUNTIME_SYCL\n#endif\n")


class FindOneDnn(unittest.TestCase):
    def test_openmp_is_taken(self):
        self.assertIn("found: TRUE version: 3.2.0", configure(runtimes("DNNL_RUNTIME_OMP", "DNNL_RUNTIME_NONE"), "3.2.0"))

    def test_the_runtime_of_gpus_does_not_matter(self):
        for gpu in ("DNNL_RUNTIME_OCL", "DNNL_RUNTIME_SYCL"):
            self.assertIn("found: TRUE", configure(runtimes("DNNL_RUNTIME_OMP", gpu)))

    def test_sycl_is_refused_with_a_sentence(self):
        for cpu in ("DNNL_RUNTIME_SYCL", "DNNL_RUNTIME_DPCPP"):
            said = configure(runtimes(cpu, "DNNL_RUNTIME_NONE"))
            self.assertIn("include has a oneDNN for SYCL, which runs asynchronously: stoker needs one that is built for OpenMP", said)
            self.assertIn("found: FALSE", said)

    def test_an_old_one_is_refused(self):
        said = configure(runtimes("DNNL_RUNTIME_OMP", "DNNL_RUNTIME_NONE"), "2.5.0")
        self.assertIn("found: FALSE", said)
        self.assertNotIn("SYCL", said)


if __name__ == "__main__":
    unittest.main()

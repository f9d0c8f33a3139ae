#!/usr/bin/env python3
"""tools/build-times on a build that Ninja really makes, and on folders that are none."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(ROOT, "tools", "build-times")
CMAKE = """cmake_minimum_required(VERSION 3.25)
project(tiny LANGUAGES CXX)
set(CMAKE_UNITY_BUILD ON)
add_subdirectory(room)
"""
ROOM = """add_library(room STATIC one.cc two.cc apart.cc)
set_source_files_properties(apart.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
"""
TEST_LOG = """1/2 Testing: quick_test
Test time =   0.25 sec
2/2 Testing: slow_test
Test time =   7.50 sec
"""


def run(*words):
    return subprocess.run([sys.executable, TOOL, *words], text=True, capture_output=True, check=False)


class BuildTimes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.build = os.path.join(self.folder.name, "build")

    def write(self, name, text):
        path = os.path.join(self.folder.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def test_what_a_build_took(self):
        self.write("CMakeLists.txt", CMAKE)
        self.write("room/CMakeLists.txt", ROOM)
        self.write("room/shared.h", "#pragma once\n")
        for name in ("one", "two", "apart"):
            self.write(f"room/{name}.cc", f'#include "shared.h"\n#include <vector>\nint {name}() {{ return 1; }}\n')
        for words in (["cmake", "-S", self.folder.name, "-B", self.build, "-G", "Ninja"], ["cmake", "--build", self.build]):
            subprocess.run(words, check=True, capture_output=True)
        with open(os.path.join(self.build, ".ninja_log"), "a", encoding="utf-8") as file:  # of files that were moved since
            file.write("0\t9000\t0\troom/CMakeFiles/room.dir/Unity/unity_7_cxx.cxx.o\t1\n")
        self.write("build/Testing/Temporary/LastTest.log", TEST_LOG)
        result = run("--json", self.build)
        self.assertEqual(result.returncode, 0, result.stderr)
        (figures,) = json.loads(result.stdout)
        self.assertEqual(figures["objects"], 2)
        self.assertEqual([name for name, _ in figures["rooms"]], ["room"])
        self.assertEqual(dict(figures["headers"])["room/shared.h"], figures["rooms"][0][1])  # both objects include it
        self.assertEqual({name for name, _ in figures["slowest_objects"]}, {"room/one.cc to two.cc (2 files)", "room/apart.cc"})
        self.assertEqual(figures["slowest_tests"], [["slow_test", 7.5], ["quick_test", 0.2]])
        text = run("--top", "1", self.build).stdout
        self.assertIn("2 objects in", text)
        self.assertIn("7.5 s  slow_test", text)
        self.assertNotIn("quick_test", text)

    def test_no_build(self):
        result = run(self.folder.name)
        self.assertEqual(result.returncode, 1)
        self.assertIn("there is no", result.stderr)
        self.write("build/build.ninja", "")
        self.write("build/.ninja_log", "# ninja log v4\n")
        result = run(self.build)
        self.assertEqual(result.returncode, 1)
        self.assertIn("another version", result.stderr)


if __name__ == "__main__":
    unittest.main()

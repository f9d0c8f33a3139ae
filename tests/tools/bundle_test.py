#!/usr/bin/env python3
"""The content and use of a bundle, without building one: libraries, data, where they are
unpacked, which CUDA libraries are missing. bundle_root_test.py tests a whole bundle on a bare
machine."""
import argparse
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import unittest

from gpu_check_support import ROOT, InFolder, load_tool, write_program  # isort: skip  (it adds the path of the others)

import cuda_libraries
import layout

bundle = load_tool("bundle")


class Making(InFolder):
    def test_takes_the_libraries_that_a_bare_machine_lacks(self):
        for name in ("libc.so.6", "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "linux-vdso.so.1"):
            self.assertTrue(bundle.OF_THE_SYSTEM.match(name), name)
        for name in ("libcuda.so.1", "libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcudnn.so.9", "libnccl.so.2",
                     "libcudnn_engines_precompiled.so.9", "libnvrtc.so.13", "libnvrtc-builtins.so.13.0", "libnvidia-ml.so.1"):
            self.assertTrue(bundle.OF_CUDA.match(name), name)
        for name in ("libcurl.so.4", "libcups.so.2", "libtbb.so.12", "libdnnl.so.2", "libjpeg.so.62", "libgomp.so.1", "libmpi.so.40",
                     "libz.so.1", "libnvme.so.1"):
            self.assertFalse(bundle.OF_CUDA.match(name) or bundle.OF_THE_SYSTEM.match(name), name)

    def test_names_the_libraries_of_cuda_that_the_programs_ask_for(self):
        saved = bundle.run
        self.addCleanup(setattr, bundle, "run", saved)
        bundle.run = lambda words: ("Dynamic Section:\n  NEEDED               libcudnn.so.9\n  NEEDED               libcublasLt.so.13\n"
                                    "  NEEDED               libcuda.so.1\n  NEEDED               libc.so.6\n")
        self.assertEqual(bundle.cuda_libraries(["plugin"]), ["libcublasLt.so.13", "libcudnn.so.9", "libnvrtc.so.13"])

    def test_takes_wheels_along_and_refuses_a_folder_without(self):
        write_program(self.path("made", "stoker-1.whl"), "")
        bundle.copy_wheels(argparse.Namespace(wheels=self.path("made"), out=self.path("out")))
        self.assertEqual(os.listdir(self.path("out", "wheels")), ["stoker-1.whl"])
        with self.assertRaises(SystemExit) as ended:
            bundle.copy_wheels(argparse.Namespace(wheels=self.path("out"), out=self.path("out")))
        self.assertIn("there is no wheel in it", ended.exception.code)

    def test_takes_airbench_along_where_gpu_check_finds_it(self):
        write_program(self.path("clone", "legacy", "airbench94.py"), "# a clone's\n")
        given = argparse.Namespace(airbench=layout.find_airbench(self.path("clone")), out=self.path("out"))
        bundle.copy_airbench(given)
        found = layout.find_airbench(self.path("out", "airbench"))
        self.assertEqual(pathlib.Path(found).read_text(encoding="utf-8"), "# a clone's\n")

    def test_takes_as_many_pictures_as_there_is_room_for(self):
        for name in ("cat", "dog"):
            os.makedirs(self.path("in", name))
            for i in range(4):
                with open(self.path("in", name, f"{name}{i}.jpg"), "wb") as file:
                    file.write(bytes(100))
        self.assertEqual(bundle.copy_images(self.path("in"), self.path("out"), 550), 5)
        self.assertEqual(bundle.size_of(self.path("out")), 500)


class Using(InFolder):
    """Runs `./stoker` of a bundle whose program prints how it was started."""

    def setUp(self):
        super().setUp()
        bundle.copy_scripts(self.path("bundle"))
        write_program(self.path("bundle", "bin", "stoker"), "#!/bin/sh\necho \"$@\"; echo \"$LD_LIBRARY_PATH\"\n")
        self.pack("a library")
        with open(self.path("bundle", "MANIFEST.json"), "w", encoding="utf-8") as file:
            json.dump({"commit": "abc", "cuda_libraries": ["libnotthere.so.9"]}, file)

    def pack(self, text):
        with tarfile.open(self.path("bundle", "lib.tar.xz"), "w:xz") as tar:
            member = tarfile.TarInfo("libours.so.1")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))

    def files(self, folder):
        return sorted(os.path.relpath(os.path.join(where, f), folder) for where, _, names in os.walk(folder) for f in names)

    def stoker(self, *words, **environment):
        variables = {**os.environ, "XDG_CACHE_HOME": self.path("cache"), "LD_LIBRARY_PATH": "/user", "PYTHONDONTWRITEBYTECODE": "",
                     **environment}
        return subprocess.run([sys.executable, self.path("bundle", "stoker"), *words], env=variables, capture_output=True, text=True,
                              check=False)

    def test_the_libraries_go_to_the_cache_folder_and_the_bundle_stays_as_it_is(self):
        before = self.files(self.path("bundle"))
        result = self.stoker("info", "--json")
        said, path = result.stdout.splitlines()
        self.assertEqual(said, "info --json")
        folder = path.split(":")[0]
        self.assertTrue(folder.startswith(self.path("cache", "stoker", "libraries-")), folder)
        self.assertTrue(path.endswith(":/user"))
        self.assertEqual(pathlib.Path(folder, "libours.so.1").read_text(encoding="utf-8"), "a library")
        self.assertEqual(self.files(self.path("bundle")), before)
        os.remove(os.path.join(folder, "libours.so.1"))
        self.stoker("info")
        self.assertEqual(os.listdir(folder), [])  # unpacked once
        self.pack("another bundle's")
        self.stoker("info")
        self.assertEqual(len(os.listdir(self.path("cache", "stoker"))), 2)  # one folder per digest

    def test_a_cache_folder_that_cannot_be_written_is_named(self):
        pathlib.Path(self.path("cache")).write_text("a file", encoding="utf-8")
        result = self.stoker("info")
        self.assertEqual(result.returncode, 1)
        self.assertIn(self.path("cache"), result.stderr)
        self.assertIn("XDG_CACHE_HOME", result.stderr)

    def test_a_missing_library_of_cuda_is_named_where_a_cuda_device_is_asked_for(self):
        for words in (("train", "--devices", "cuda:0"), ("bench", "depth", "--device=cuda:1"), ("train", "--devices", "cpu:1,cuda:0*2")):
            result = self.stoker(*words)
            self.assertEqual(result.returncode, 1, words)
            self.assertIn("not found: libnotthere.so.9", result.stderr)
            self.assertIn("/user", result.stderr)  # the folders that it searched
            self.assertIn(sys.executable, result.stderr)
        self.assertEqual(self.stoker("train", "--devices", "cpu:1").returncode, 0)
        os.makedirs(self.path("there"))
        pathlib.Path(self.path("there", "libnotthere.so.9")).touch()
        self.assertEqual(self.stoker("train", "--devices", "cuda:0", LD_LIBRARY_PATH=self.path("there")).returncode, 0)

    def test_another_version_is_said_to_be_there(self):
        os.makedirs(self.path("there"))
        pathlib.Path(self.path("there", "libnotthere.so.8")).touch()
        text = cuda_libraries.problem(["libnotthere.so.9"], self.path("there"))
        self.assertIn("there are libnotthere.so.8, which are other versions", text)


class Wheels(InFolder):
    """Where PyTorch's wheels install CUDA: one folder each, or one for all from CUDA 13 on."""

    def python(self, **files):
        """Makes a virtual environment's Python with these files in its site-packages."""
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--symlinks", self.path("venv")], check=True)
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        packages = self.path("venv", "lib", version, "site-packages")
        for name, folder in files.items():
            os.makedirs(os.path.join(packages, "nvidia", folder, "lib"), exist_ok=True)
            pathlib.Path(packages, "nvidia", folder, "lib", name.replace("__", ".so.")).touch()
        return self.path("venv", "bin", "python"), os.path.join(os.path.realpath(packages), "nvidia")

    def test_every_layout_of_wheels_is_found(self):
        for files in ({"libcublasLt__13": "cu13", "libnvrtc__13": "cu13", "libcudnn__9": "cudnn", "libnccl__2": "nccl"},
                      {"libcublasLt__12": "cublas", "libnvrtc__12": "cuda_nvrtc", "libcudnn__9": "cudnn", "libnccl__2": "nccl"}):
            python, packages = self.python(**files, **{"libcufft__11": "cufft"})
            found = [f for f in cuda_libraries.library_folders(python) if f.startswith(packages)]
            self.assertEqual(found, sorted({os.path.join(packages, folder, "lib") for folder in files.values()}))
            shutil.rmtree(self.path("venv"))

    def test_an_activated_environment_is_looked_at_too(self):
        _, packages = self.python(libcudnn__9="cudnn")
        result = subprocess.run([sys.executable, os.path.join(ROOT, "bench", "gpu", "cuda_libraries.py")], capture_output=True, text=True,
                                check=True, env={**os.environ, "VIRTUAL_ENV": self.path("venv")})
        self.assertIn(os.path.join(packages, "cudnn", "lib"), result.stdout.strip().split(":"))


if __name__ == "__main__":
    unittest.main()

"""A root that has a release of Debian or Ubuntu with Python and nothing else, made by debootstrap, and programs that run in it.

Needs root and debootstrap. Roots are kept in a folder, and copied for each use, so that every test begins with a bare one.
"""
import os
import re
import shutil
import subprocess

LEFT_OUT = 77
UBUNTU = ("jammy", "noble")
# Python with what its venv needs is all that a user of a wheel has.
PACKAGES = "python3,python3-venv,ca-certificates"
# A namespace of its own: whatever is mounted is gone when the program ends, however it ends.
ENTER = """set -e
mount --make-rprivate /
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
exec chroot "$0" "$@"
"""
# Settings by which a root reaches what this machine reaches, as apt and pip are configured here.
NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")
NETWORK_VARIABLES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CERT", "SSL_CERT_FILE", "http_proxy", "https_proxy", "no_proxy")
APT = ("apt-get", "-q", "-y", "--no-install-recommends")


class NotHere(Exception):
    """Such a root cannot be had on this machine; the text says why."""


def ubuntu_archive():
    """Returns the address of Ubuntu's archive on the server that this machine's apt takes its packages from. Raises NotHere."""
    targets = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], capture_output=True, text=True, check=False)
    for address in targets.stdout.split():
        server = re.fullmatch(r"(.*)/(debian|ubuntu)/?", address)
        if server:
            return f"{server[1]}/ubuntu"
    raise NotHere("apt names no archive of Debian or Ubuntu")


def bootstrap(suite, target):
    """Returns the command that makes the root of a release in `target`. Raises NotHere."""
    words = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}"]
    if suite not in UBUNTU:
        return [*words, suite, target]
    # The debootstrap of Debian knows no Ubuntu that is younger than itself; one script serves all of them.
    return [*words, "--components=main,universe", suite, target, ubuntu_archive(), "/usr/share/debootstrap/scripts/gutsy"]


def kept_root(suite, folder):
    """Makes the root of a release in `folder`, unless it is there; returns its path. Raises NotHere."""
    root = os.path.join(folder, suite)
    if os.path.exists(root):
        return root
    if os.geteuid() != 0:
        raise NotHere("not root")
    if not shutil.which("debootstrap"):
        raise NotHere("no debootstrap")
    os.makedirs(folder, exist_ok=True)
    log = os.path.join(folder, f"{suite}.log")
    part = f"{root}.part"
    with open(log, "w", encoding="utf-8") as file:
        made = subprocess.run(bootstrap(suite, part), stdout=file, stderr=file, check=False)
    if made.returncode != 0:
        with open(log, encoding="utf-8") as file:
            raise NotHere(f"debootstrap {suite}: {file.read().strip().splitlines()[-1]}")
    os.rename(part, root)
    return root


def conclude(check, *arguments):
    """Calls a test's check and says how it ended; returns the exit code of the test."""
    try:
        check(*arguments)
    except NotHere as reason:
        print(f"left out: {reason}")
        return LEFT_OUT
    except AssertionError as error:
        print(f"FAILED: {error}")
        return 1
    print("passed")
    return 0


class BareRoot:
    """A copy of a kept root; `name` tells several at once apart. The end of a `with` removes it."""

    def __init__(self, suite, folder, name="copy"):
        kept = kept_root(suite, folder)
        self.folder = os.path.join(folder, f"{suite}.{name}")
        shutil.rmtree(self.folder, ignore_errors=True)
        subprocess.run(["cp", "-a", "--reflink=auto", kept, self.folder], check=True)
        for name in NETWORK:
            if os.path.exists(name):
                shutil.copy2(name, self.path(name))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name.lstrip("/"))

    def add(self, source, target):
        """Copies a file or a folder into the root."""
        os.makedirs(os.path.dirname(self.path(target)), exist_ok=True)
        (shutil.copytree if os.path.isdir(source) else shutil.copy2)(source, self.path(target))

    def run(self, *words, **variables):
        """Runs a program in the root, as root, with only its own environment; returns the finished process."""
        network = {name: os.environ[name] for name in NETWORK_VARIABLES if name in os.environ}
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8", **network, **variables}
        return subprocess.run(["unshare", "--mount", "sh", "-c", ENTER, self.folder, *words], capture_output=True, text=True,
                              check=False, stdin=subprocess.DEVNULL, env=environment)

    def run_well(self, *words, **variables):
        """The same for what must succeed: returns what it printed, or raises AssertionError with it."""
        result = self.run(*words, **variables)
        assert result.returncode == 0, f"{' '.join(words)}: {result.returncode}\n{result.stdout[-4000:]}\n{result.stderr[-4000:]}"
        return result.stdout

    def update_lists(self):
        """Makes apt know which packages there are. Raises NotHere."""
        update = self.run(*APT, "update")
        if update.returncode != 0:
            raise NotHere(f"apt-get update: {update.stderr.strip().splitlines()[-1]}")

    def install(self, *packages):
        """Installs packages of the release, or files with packages, and what they depend on."""
        self.run_well(*APT, "install", *packages, DEBIAN_FRONTEND="noninteractive")

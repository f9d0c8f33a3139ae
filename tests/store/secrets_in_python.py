"""Run by secrets_test.py with the Python package: every function that takes `store`, on signed URLs that can be read and on others.
Whatever is raised, warned of or written is printed or left for that test to search.

    secrets_in_python.py ENDPOINT SIGNED PASSWORD OUT      SIGNED is what follows the path of a URL
"""
import inspect
import os
import pickle
import sys
import traceback
import warnings

import stoker

ENDPOINT, SIGNED, PASSWORD, OUT = sys.argv[1:]
sys.argv[1:] = [f"--data={ENDPOINT}/b/train-000000.tar{SIGNED}"]  # as a script of a user's has it
FUNCTIONS = {"folder": {}, "cifar": {"split": "train"}, "open": {}, "tar": {}, "parquet": {}, "tfrecord": {}, "mds": {}, "csv": {}}


def refused(what, call):
    try:
        call()
    except Exception as error:  # whatever it is: its text is looked at
        print("refused", what, type(error).__name__, error, getattr(error, "filename", ""), repr(error))
        traceback.print_exc()
    else:
        print("taken", what)


def feed(source):
    print(repr(source), source.root, source.notes, [source.name(i) for i in range(3)])
    with stoker.Loader(source, batch_size=8, size=16, workers=1, device="cpu") as loader:
        watched = stoker.watch(loader, warm_up=0)
        for batch in watched:
            print(batch.names)
        print(repr(loader), loader.state_dict(), watched.report())
        os.makedirs(OUT, exist_ok=True)
        watched.to_html(os.path.join(OUT, "profile.html"))


def takes_store(name):
    try:
        return "store" in inspect.signature(getattr(stoker, name)).parameters
    except (TypeError, ValueError):
        return False


def main():
    warnings.simplefilter("always")
    there = {name for name in dir(stoker) if not name.startswith("_") and takes_store(name)}
    assert there == set(FUNCTIONS), there ^ set(FUNCTIONS)
    url, host = f"{ENDPOINT}/b/", ENDPOINT.split("://")[1]
    feed(stoker.tar(url + "noted.tar" + SIGNED))
    feed(stoker.open([url + "train-000000.tar" + SIGNED, url + "train-000000.tar" + SIGNED + "&part=2"]))
    feed(stoker.tar(url + "damaged.tar" + SIGNED, wait=False))
    for name, more in FUNCTIONS.items():
        call = getattr(stoker, name)
        for path in (url + "none.tar" + SIGNED, url + "no.tar" + SIGNED, url + "cut.tar" + SIGNED, f"{ENDPOINT}/denied/x.tar{SIGNED}",
                     f"http://127.0.0.1:9/x.tar{SIGNED}", f"http://me:{PASSWORD}@{host}/b/x.tar", f"HTTPS://h/x.tar{SIGNED}",
                     f"gs://me:{PASSWORD}@b/x.tar{SIGNED}", f"hf://x/y{SIGNED}", f"{url}x-{{9..1}}.tar{SIGNED}", f"{url}{SIGNED}",
                     f"{url}train-000000.tar{SIGNED}#x", f"file://h/x{SIGNED}"):
            refused(name, lambda path=path: call(path, store=stoker.Store(tries=1), **more))
            refused(name, lambda path=path: call(path, **more))
            if name not in ("folder", "cifar"):
                refused(name, lambda path=path: call([path, path], **more))
        refused(name, lambda: call(url + "train-000000.tar" + SIGNED, split="test"))
    refused("label_from", lambda: stoker.tar(url + "train-000000.tar" + SIGNED, label_from="nothing"))
    refused("image_from", lambda: stoker.tar(url + "train-000000.tar" + SIGNED, image_from="nothing"))
    refused("cache", lambda: stoker.tar(url + "noted.tar" + SIGNED, store=stoker.Store(cache=url + SIGNED, cache_size=1000)))
    refused("endpoint", lambda: print(repr(stoker.Store(endpoint=f"http://me:{PASSWORD}@{host}"))))
    print("a source is pickled with its address", len(pickle.dumps(stoker.tar(url + "train-000000.tar" + SIGNED))))


main()

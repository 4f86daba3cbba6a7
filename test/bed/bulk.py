"""Creates very many objects fast: 48 requests in flight, spread over a few processes because one Python
process is limited to one core's worth of TLS and JSON."""
import itertools
import json
import multiprocessing
import threading
import time

from bed import objects
from bed.client import Client, path_of

WRITERS = 48
PROCESSES = 2
CHUNK = 1500


def create_all(bed, manifests, writers=WRITERS):
    """Creates every object of the iterable; raises the first error. Returns the seconds it took."""
    started = time.monotonic()
    manifests = iter(manifests)
    first = list(itertools.islice(manifests, CHUNK))
    if len(first) < CHUNK:
        _write(bed.connection(), [_encoded(obj) for obj in first], writers)
        return time.monotonic() - started
    context = multiprocessing.get_context("forkserver")  # forking a process with threads is not safe
    with context.Pool(PROCESSES) as pool:
        chunks = itertools.chain([first], iter(lambda: list(itertools.islice(manifests, CHUNK)), []))
        jobs = ((bed.connection(), [_encoded(obj) for obj in chunk], writers // PROCESSES) for chunk in chunks)
        for _ in pool.imap_unordered(_write_job, jobs):
            pass
    return time.monotonic() - started


def bound_pods(count, node_names, namespace="default", labels=None, **spec):
    """Yields `count` pods already bound to the nodes in turn, for load without a scheduler."""
    for index, node_name in zip(range(count), itertools.cycle(node_names)):
        yield objects.pod(f"pod-{index:06}", namespace, labels={"app": f"app-{index % 100}", **(labels or {})},
                          node_name=node_name, **spec)


def _encoded(obj):
    return path_of(obj["kind"], None, obj["metadata"].get("namespace")), json.dumps(obj).encode()


def _write_job(job):
    _write(*job)


def _write(connection, requests, writers):
    client = Client(*connection)
    remaining, lock, errors = iter(requests), threading.Lock(), []

    def work():
        while not errors:
            with lock:
                request = next(remaining, None)
            if request is None:
                break
            try:
                client.request("POST", *request)
            except Exception as error:  # the first one ends all writers and is raised below
                errors.append(error)
        client.close()

    threads = [threading.Thread(target=work) for _ in range(min(writers, max(1, len(requests))))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise RuntimeError(f"creating objects failed: {errors[0]}")

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


def create_all(bed, manifests, writers=WRITERS, statuses=False):
    """Creates every object of the iterable; raises the first error. Returns the seconds it took.
    statuses=True: writes each object's status too, which the API server drops when a pod is created."""
    started = time.monotonic()
    manifests = iter(manifests)
    first = list(itertools.islice(manifests, CHUNK))
    if len(first) < CHUNK:
        _write(bed.connection(), [_encoded(obj, statuses) for obj in first], writers)
        return time.monotonic() - started
    context = multiprocessing.get_context("forkserver")  # forking a process with threads is not safe
    with context.Pool(PROCESSES) as pool:
        chunks = itertools.chain([first], iter(lambda: list(itertools.islice(manifests, CHUNK)), []))
        jobs = ((bed.connection(), [_encoded(obj, statuses) for obj in chunk], writers // PROCESSES)
                for chunk in chunks)
        for _ in pool.imap_unordered(_write_job, jobs):
            pass
    return time.monotonic() - started


def bound_pods(count, node_names, namespace="default", labels=None, **spec):
    """Yields `count` pods already bound to the nodes in turn, for load without a scheduler."""
    for index, node_name in zip(range(count), itertools.cycle(node_names)):
        yield objects.pod(f"pod-{index:06}", namespace, labels={"app": f"app-{index % 100}", **(labels or {})},
                          node_name=node_name, **spec)


def _encoded(obj, statuses):
    """The requests that make one object, as (method, path, body)."""
    kind, meta, body = obj["kind"], obj["metadata"], json.dumps(obj).encode()
    requests = [("POST", path_of(kind, None, meta.get("namespace")), body)]
    if statuses and "status" in obj:
        requests.append(("PUT", path_of(kind, meta["name"], meta.get("namespace"), "status"), body))
    return requests


def _write_job(job):
    _write(*job)


def _write(connection, objects_requests, writers):
    client = Client(*connection)
    remaining, lock, errors = iter(objects_requests), threading.Lock(), []

    def work():
        while not errors:
            with lock:
                requests = next(remaining, None)
            if requests is None:
                break
            try:
                for request in requests:
                    client.request(*request)
            except Exception as error:  # the first one ends all writers and is raised below
                errors.append(error)
        client.close()

    threads = [threading.Thread(target=work) for _ in range(min(writers, max(1, len(objects_requests))))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise RuntimeError(f"creating objects failed: {errors[0]}")

"""A way through: connections to one socket go on to another one."""
import socket
import threading


def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    for end in (source, sink):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def serve(listener, connect):
    """Until the listener is closed; `connect()` makes the socket that a client's goes on to."""
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        peer = connect()
        for pair in ((client, peer), (peer, client)):
            threading.Thread(target=pump, args=pair, daemon=True).start()
